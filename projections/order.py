"""I8: whether the jobs of each ordering key ran in order, one at a time.

Of a job only its number, its first lease and its end are kept, so that a long log can be
checked.  Those born before an earlier job ended must not have been leased before that end; a job
that is held lets the later ones go on only if it says so.

What came first is told by the numbers of events: a worker that saw a job's end draws a higher one,
while the clock of a server may be set back.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TypeAlias
from uuid import UUID

from ..domain.events import Leased
from ..domain.log import Recorded
from ..domain.ordering import lets_go_on
from .replay.clock import micros, moment
from .streams import Step

Finding: TypeAlias = tuple[UUID, str, tuple[Recorded, ...]]

#: Stands for a first lease, or an end, that has not been.
NONE = -1
#: The columns of integers that a run is kept in; a first lease in those from ``lease`` on.
COLUMNS = ("key", "number", "over", "lease", "version", "xid", "at", "until", "start", "worker")
HALF = 2**64


class Order:
    """The runs of every ordering key that the log tells of, in columns, as there may be a million.

    A run is a job of a key: its ``number``, its first lease, and in ``over`` the number of the
    event that let the next one go on.
    """

    def __init__(self) -> None:
        self._columns = {name: array("q") for name in COLUMNS}
        self._ids = array("Q")
        self._keys: dict[str, int] = {}
        self._workers: dict[str, int] = {}

    def add(self, life: Sequence[Step]) -> None:
        """One more stream."""
        birth, job = life[0].recorded, life[-1].after
        key = job.spec.ordering_key
        if key is None:
            return
        leases = (step.recorded for step in life if isinstance(step.recorded.event, Leased))
        over = life[-1].recorded.event_id if lets_go_on(job) else NONE
        number = job.spec.sequence or birth.event_id
        place = self._keys.setdefault(key, len(self._keys))
        self._ids.extend(divmod(job.id.int, HALF))
        run = (place, number, over, *self._lease(next(leases, None)))
        for column, value in zip(self._columns.values(), run, strict=True):
            column.append(value)

    def _lease(self, first: Recorded | None) -> tuple[int, ...]:
        if first is None:
            return (NONE, 0, 0, 0, 0, 0, 0)
        event = first.event
        assert isinstance(event, Leased)
        worker = self._workers.setdefault(event.worker, len(self._workers))
        at, until = micros(event.at), micros(event.lease_until)
        return (first.event_id, first.version, first.xid, at, until, event.start, worker)

    def broken(self) -> Iterator[Finding]:
        """Every start before the end of an earlier job of its key."""
        keys, numbers = self._columns["key"], self._columns["number"]
        ordered = sorted(range(len(keys)), key=lambda run: (keys[run], numbers[run]))
        for _, runs in groupby(ordered, key=keys.__getitem__):
            yield from self._out_of_order(runs)

    def _out_of_order(self, runs: Iterator[int]) -> Iterator[Finding]:
        lease, over = self._columns["lease"], self._columns["over"]
        last: int | None = None
        for run in runs:
            if lease[run] != NONE and last is not None:
                earlier = f"the earlier job {self._id(last)} of its key"
                if over[last] == NONE:
                    text = f"it started although {earlier} has not ended"
                    yield self._id(run), text, (self._first(run),)
                elif lease[run] < over[last]:
                    text = f"it started before {earlier} had ended"
                    yield self._id(run), text, (self._first(run),)
            if last is None or _later(over[run], over[last]):
                last = run

    def _id(self, run: int) -> UUID:
        return UUID(int=self._ids[2 * run] * HALF + self._ids[2 * run + 1])

    def _first(self, run: int) -> Recorded:
        """The first lease of a run, as the log has it."""
        number, version, xid, at, until, start, worker = (
            self._columns[name][run] for name in COLUMNS[3:]
        )
        event = Leased(moment(at), list(self._workers)[worker], moment(until), start)
        return Recorded(self._id(run), version, number, xid, event)


def _later(over: int, last: int) -> bool:
    """Whether an end came later than the ``last`` one; what has not ended comes last of all."""
    return last != NONE and (over == NONE or over > last)
