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
class Column:
    """A column of the table: its title, what it shows, with how many decimals."""

    title: str
    value: Value
    digits: int = 0
    spread: bool = False


COLUMNS = (
    Column("jobs/s", lambda r: r.jobs_per_second, spread=True),
    Column("enqueue/s in bulk", lambda r: r.bulk_per_second),
    Column("enqueue/s one by one", lambda r: r.single_per_second, spread=True),
    Column("µs a job: PostgreSQL", lambda r: r.postgres_us),
    Column("Python", lambda r: r.python_us),
    Column("WAL bytes a job: enqueue", lambda r: r.wal_bulk),
    Column("drain", lambda r: r.wal_drain),
    Column("worker peak MB", lambda r: r.memory_peak),
    Column("claim ms", lambda r: r.claim_ms, digits=1),
    Column("start ms p50", lambda r: r.start_p50, digits=1),
    Column("p95", lambda r: r.start_p95, digits=1),
    Column("p99", lambda r: r.start_p99, digits=1),
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
    columns = [c for c in COLUMNS if any(c.value(each) is not None for each in results)]
    table = Table(title=f"{measure}: {results[0].jobs:,} jobs", title_justify="left")
    table.add_column("queue")
    for column in columns:
        table.add_column(column.title, justify="right")
    for base in BASES:
        table.add_column(f"of {base}", justify="right")
    table.add_column("rounds", justify="right")
    for queue, behind in dict.fromkeys((each.queue, each.behind) for each in results):
        mine = [each for each in results if (each.queue, each.behind) == (queue, behind)]
        kept = quiet(mine)
        found = ratios(results, mine)
        table.add_row(
            f"{queue}, {behind:,} + {behind:,} behind" if behind else queue,
            # A noisy figure is better than none, if it is seen to be one.
            *(_cell(column, kept or mine) + ("" if kept else " ~") for column in columns),
            *(_ratio(found.get(base, [])) for base in BASES),
            f"{len(kept)} of {len(mine)}",
        )
    console.print(table)
    if len(quiet(results)) < len(results):
        console.print("Rounds in which others used more than 0.3 cores are left out; ~ marks noise")


def _drained(result: Result) -> float | None:
    return result.jobs_per_second


def _cell(column: Column, results: Sequence[Result]) -> str:
    values = [value for each in results if (value := column.value(each)) is not None]
    if not values:
        return ""
    middle = f"{median(values):,.{column.digits}f}"
    if not column.spread or len(values) == 1:
        return middle
    return f"{middle} [dim]{min(values):,.0f}-{max(values):,.0f}[/]"


def _ratio(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{median(values):.2f} [dim]{min(values):.2f}-{max(values):.2f}[/]"


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
