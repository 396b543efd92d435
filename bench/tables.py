"""A measure as a table of texts, which the terminal and the page both show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from types import MappingProxyType

from attrs import frozen

from .peers import KINDS
from .ratios import against, against_best, is_library, shown
from .result import FIGURES, MAIN, Result

#: measure -> figures that are shown, in this order
COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "drain": (
            "jobs_per_second",
            "bulk_per_second",
            "wal_bulk",
            "wal_drain",
            "postgres_us",
            "worker_us",
            "memory_peak",
        ),
        "two": ("jobs_per_second", "postgres_us", "worker_us", "memory_peak"),
        "bulk": ("bulk_per_second", "wal_bulk", "size_bulk"),
        "single": ("single_per_second",),
        "latency": ("start_p50", "start_p95", "start_p99"),
        "latency-two": ("start_p50", "start_p95", "start_p99"),
        "hot": ("items_per_second", "open_items_per_second", "served_items_per_second"),
        "notify": ("ringing_per_second", "silent_per_second", "ringing"),
        "growth": (
            "jobs_per_second",
            "behind_per_second",
            "slower",
            "claim_ms",
            "behind_claim_ms",
        ),
        "snapshot": (
            "before_per_second",
            "after_per_second",
            "held_per_second",
            "kept",
            "paced_per_second",
            "held_paced_per_second",
            "late_p99",
            "held_late_p99",
        ),
        "idle": (
            "core_percent",
            "postgres_percent",
            "statements_per_second",
            "queries_per_second",
            "transactions_per_second",
        ),
    }
)
BUSY = "others were busy"


@frozen
class Table:
    """Headings, and a row of texts for each queue."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def table(results: Iterable[Result], measure: str) -> Table:
    """Medians with their ranges, ratios inside the rounds, and how many rounds were quiet."""
    mine = [each for each in results if each.measure == measure]
    figures = [name for name in COLUMNS[measure] if any(name in each.figures for each in mine)]
    main = MAIN[measure][0]
    queues = list(dict.fromkeys(each.queue for each in mine))
    compared = {queue: _ratios(mine, measure, main, queue) for queue in queues}
    bases = [base for base in ("bare", "library") if any(compared[q][base] for q in queues)]
    titles = {"bare": "of bare SQL", "library": "of the fastest other Python library"}
    rows: list[list[str]] = []
    for queue in sorted(queues, key=order):
        runs = [each for each in mine if each.queue == queue]
        quiet = [each for each in runs if each.quiet]
        cells = [_cell(shown(mine, measure, queue, name), name) for name in figures]
        cells += [_ratio(compared[queue][base]) for base in bases]
        told = f"{len(quiet)} of {len(runs)}"
        rows.append([name_of(queue), *cells, told if quiet else f"{told}: {BUSY}"])
    headings = ["queue", *(FIGURES[name].title for name in figures)]
    return Table([*headings, *(titles[base] for base in bases), "quiet rounds"], rows)


def name_of(queue: str) -> str:
    """What people call it."""
    return KINDS[queue].title if queue in KINDS else queue


def order(queue: str) -> int:
    """Its place in every table."""
    names = list(KINDS)
    return names.index(queue) if queue in names else len(names)


def _ratios(
    results: Sequence[Result], measure: str, figure: str, queue: str
) -> dict[str, list[float]]:
    return {
        "bare": against(results, measure, figure, queue, "bare") if queue != "bare" else [],
        "library": against_best(results, measure, figure, queue, is_library),
    }


def _ratio(found: Sequence[float]) -> str:
    return number(found, 2) if found else ""


def _cell(found: Sequence[float], name: str) -> str:
    return number(found, FIGURES[name].digits) if found else ""


def number(values: Sequence[float], digits: int) -> str:
    """The median, and the range when there is one."""
    middle = f"{median(values):,.{digits}f}"
    low, high = f"{min(values):,.{digits}f}", f"{max(values):,.{digits}f}"
    return middle if low == high else f"{middle} ({low}–{high})"
