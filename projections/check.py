"""The one checker of invariants, used by tests, long runs and ``leasebook check``.

It reads a log grouped by job, in order of version, and holds one stream at a time; beside it only
the ids of items seen, since no item may be in two groups, the unique keys in use, and when the jobs
of an ordering key ran.  Given the
rows of the claim table, taken in one snapshot with the log, it also holds them against the fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from attrs import frozen

from ..domain.events import ItemsJoined
from ..domain.log import Recorded
from .claim import KeptRow, differences
from .invariants import INVARIANTS, RULES
from .order import Order
from .row import to_row
from .streams import Step, Stream, by_job, steps

__all__ = ["INVARIANTS", "KeptRow", "Violation", "check"]


@frozen
class Violation:
    """One invariant that does not hold, with the fewest events that show it (none: a stray row)."""

    invariant: str
    job_id: UUID
    text: str
    events: tuple[Recorded, ...] = ()

    def __str__(self) -> str:
        where = ", ".join(str(recorded.version) for recorded in self.events)
        at = f" (version {where})" if where else ""
        return f"{self.invariant} broken by job {self.job_id}{at}: {self.text}"


def check(
    log: Iterable[Recorded], rows: Mapping[UUID, KeptRow] | None = None
) -> Iterator[Violation]:
    """Every violation in ``log``, and in ``rows`` when they are given.

    ``rows`` holds the claim table by job id; only ids that have a row are in it.
    """
    grouped: dict[int, UUID] = {}
    order = Order()
    holders: dict[tuple[str, str], UUID] = {}
    seen: set[UUID] = set()
    for stream in by_job(log):
        job_id, life = stream[0].job_id, steps(stream)
        if not life:
            yield Violation("I2", job_id, "it does not begin with its birth", stream[:1])
        for name, rule in RULES:
            for text, events in rule(life):
                yield Violation(name, job_id, text, events)
        yield from _items_once(stream, grouped)
        if life:
            yield from _keys_once(life, holders)
            order.add(life)
        if rows is not None:
            if job_id in rows:
                seen.add(job_id)
            if life:
                yield from _same_row(life, rows.get(job_id))
    for job_id, text, events in order.broken():
        yield Violation("I8", job_id, text, events)
    if rows is not None:
        yield from _rows_alone(rows, seen)


def _rows_alone(rows: Mapping[UUID, KeptRow], seen: set[UUID]) -> Iterator[Violation]:
    """I13 and I8 of the rows: each has a stream, and who blocks another stands there and knows."""
    for job_id, kept in rows.items():
        if job_id not in seen:
            yield Violation("I13", job_id, "it has a row and no stream")
        blocker = kept.row[1].blocked_by
        if blocker is not None and (blocker not in rows or not rows[blocker].has_waiter):
            text = f"it is blocked by job {blocker}, which has no row or does not know of it"
            yield Violation("I8", job_id, text)


def _items_once(stream: Stream, grouped: dict[int, UUID]) -> Iterator[Violation]:
    """I18 over the whole log: no item is in two collections."""
    for here in stream:
        if not isinstance(here.event, ItemsJoined):
            continue
        for item in here.event.item_ids:
            if item in grouped:
                text = f"item {item} had joined job {grouped[item]} before"
                yield Violation("I18", here.job_id, text, (here,))
            grouped[item] = here.job_id


def _keys_once(life: tuple[Step, ...], holders: dict[tuple[str, str], UUID]) -> Iterator[Violation]:
    """I11 over the whole log: nobody else has the unique key of a job that has a row.

    (Nothing can be said of earlier times: a birth is stamped before it waits for its key.)
    """
    job = life[-1].after
    key = job.spec.unique_key
    if key is None or to_row(job) is None:
        return
    holder = holders.setdefault((job.spec.queue, key), job.id)
    if holder != job.id:
        text = f"job {holder} has its unique key too, and is neither finished nor discarded"
        yield Violation("I11", job.id, text, (life[0].recorded,))


def _same_row(life: tuple[Step, ...], kept: KeptRow | None) -> Iterator[Violation]:
    """I13: the row of a job is what the fold of its stream gives."""
    found = differences(life, kept)
    if found:
        last = life[-1].recorded
        yield Violation("I13", last.job_id, "; ".join(found), (last,))
