"""From results to what a reader wants to know: medians, spread, and ratios inside each round.

The speed of a machine drifts by a quarter within minutes, so two queues are compared only inside
a round, where they ran one after the other, and the ratio shown is the median over the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from attrs import frozen
from rich.console import Console
from rich.table import Table

from .measures import Result

FOREIGN_CORES_MAX = 0.3
BASES = ("bare", "pgqueuer")
MEMORY_MEGABYTES_MAX = 150.0
PGQUEUER_SHARE_MIN = 0.8
GROWTH_MAX = 1.3

Value = Callable[[Result], float | None]


@frozen
class Row:
    """A row of the table: its title, what it shows, with how many decimals."""

    title: str
    value: Value
    digits: int = 0


ROWS = (
    Row("jobs/s", lambda r: r.jobs_per_second),
    Row("enqueued in bulk, jobs/s", lambda r: r.bulk_per_second),
    Row("enqueued one by one, jobs/s", lambda r: r.single_per_second),
    Row("PostgreSQL, µs a job", lambda r: r.postgres_us, digits=1),
    Row("Python, µs a job", lambda r: r.python_us, digits=1),
    Row("WAL of the enqueue, bytes a job", lambda r: r.wal_bulk),
    Row("WAL of the drain, bytes a job", lambda r: r.wal_drain),
    Row("tables after the enqueue, bytes a job", lambda r: r.size_bulk),
    Row("peak memory of a worker, MB", lambda r: r.memory_peak),
    Row("claim of a batch, ms", lambda r: r.claim_ms, digits=1),
    Row("start after the call, p50, ms", lambda r: r.start_p50, digits=1),
    Row("p95", lambda r: r.start_p95, digits=1),
    Row("p99", lambda r: r.start_p99, digits=1),
)
RATE: dict[str, Value] = {
    "bulk": lambda r: r.bulk_per_second,
    "single": lambda r: r.single_per_second,
}


def quiet(results: Iterable[Result]) -> list[Result]:
    """Those that had the machine to themselves."""
    return [each for each in results if each.foreign <= FOREIGN_CORES_MAX]


def ratios(results: Sequence[Result], mine: Sequence[Result]) -> dict[str, list[float]]:
    """For each base, my rate over its rate in every round where both were measured in quiet."""
    found: dict[str, list[float]] = {}
    for result in quiet(mine):
        rate = RATE.get(result.measure, _drained)
        for base in quiet(results):
            same = (base.measure, base.round) == (result.measure, result.round)
            if not same or base.behind or base.queue not in BASES or base.queue == result.queue:
                continue
            if (own := rate(result)) and (other := rate(base)) and not result.behind:
                found.setdefault(base.queue, []).append(own / other)
    return found


def growths(mine: Sequence[Result], value: Value) -> list[float]:
    """For each round: with jobs behind over without."""
    pairs: dict[int, dict[bool, float]] = {}
    for result in quiet(mine):
        if (measured := value(result)) is not None and result.measure == "growth":
            pairs.setdefault(result.round, {})[bool(result.behind)] = measured
    return [pair[True] / pair[False] for pair in pairs.values() if len(pair) == 2]


def show(console: Console, results: Sequence[Result]) -> None:
    """One table for each measure, and the floors."""
    for measure in dict.fromkeys(each.measure for each in results):
        of_it = [each for each in results if each.measure == measure]
        _show_measure(console, measure, of_it)
    for met, text in floors(results):
        console.print(f"{'[green]met[/]' if met else '[red]NOT MET[/]':>8}  {text}")


def _show_measure(console: Console, measure: str, results: Sequence[Result]) -> None:
    shown = list(dict.fromkeys((each.queue, each.behind) for each in results))
    columns = [[each for each in results if (each.queue, each.behind) == key] for key in shown]
    table = Table(title=f"{measure}: {results[0].jobs:,} jobs", title_justify="left")
    table.add_column("median [dim]and range[/]")
    for (queue, behind), mine in zip(shown, columns, strict=True):
        noisy = "" if quiet(mine) else "\n[red]others were busy[/]"
        also = f"\n{behind:,} done and\n{behind:,} delayed behind" if behind else ""
        table.add_column(f"{queue}{also}{noisy}", justify="right")
    for row in ROWS:
        # A noisy figure is better than none, if it is seen to be one.
        found = [_values(row.value, quiet(mine) or mine) for mine in columns]
        if any(found):
            table.add_row(row.title, *(_cell(values, row.digits) for values in found))
    for base in BASES:
        found = [ratios(results, mine).get(base, []) for mine in columns]
        if any(found):
            table.add_row(f"share of {base}", *(_cell(values, 2) for values in found))
    counts = (f"{len(quiet(mine))} of {len(mine)}" for mine in columns)
    table.add_row("quiet rounds", *counts, style="dim")
    console.print(table)


def _drained(result: Result) -> float | None:
    return result.jobs_per_second


def _values(value: Value, results: Sequence[Result]) -> list[float]:
    return [measured for each in results if (measured := value(each)) is not None]


def _cell(values: Sequence[float], digits: int) -> str:
    if not values:
        return ""
    middle = f"{median(values):,.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} [dim]{min(values):,.{digits}f}-{max(values):,.{digits}f}[/]"


def floors(results: Sequence[Result]) -> list[tuple[bool, str]]:
    """What leasebook promises, as far as it was measured: whether it holds, and in which words."""
    found: list[tuple[bool, str]] = []
    mine = [each for each in results if each.queue == "leasebook"]
    drains = [each for each in mine if each.measure == "drain"]
    if share := ratios(results, drains).get("pgqueuer"):
        text = f"drain is {median(share):.2f} of PGQueuer's (floor {PGQUEUER_SHARE_MIN})"
        found.append((median(share) >= PGQUEUER_SHARE_MIN, text))
    peaks = [each.memory_peak for each in mine if each.memory_peak is not None]
    if peaks:
        text = f"a worker peaks at {max(peaks):.0f} MB (limit {MEMORY_MEGABYTES_MAX:.0f})"
        found.append((max(peaks) < MEMORY_MEGABYTES_MAX, text))
    for what, values in (
        ("claim", growths(mine, lambda r: r.claim_ms)),
        ("drain", growths(mine, lambda r: 1 / r.jobs_per_second if r.jobs_per_second else None)),
    ):
        if values:
            text = f"with jobs behind a {what} takes {median(values):.2f} times as long"
            found.append((median(values) <= GROWTH_MAX, f"{text} (limit {GROWTH_MAX})"))
    return found
