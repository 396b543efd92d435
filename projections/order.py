"""I8: whether the jobs of each ordering key ran in order, one at a time.

Of a job only its number, its first lease and its end are kept, so that a log of any length can be
checked.  Those born before an earlier job ended must not have been leased before that end; a job
that is held lets the later ones go on only if it says so.

What came first is told by the numbers of events: a worker that saw a job's end draws a higher one,
while the clock of a server may be set back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from attrs import define, field, frozen

from ..domain.events import Leased
from ..domain.log import Recorded
from ..domain.ordering import lets_go_on
from .streams import Step

Finding = tuple[UUID, str, tuple[Recorded, ...]]


@frozen
class _Run:
    """A job of a key: its number, its first lease, and the event that let the next one go on."""

    number: int
    job_id: UUID
    first: Recorded | None
    over: int | None


@define
class Order:
    """The runs of every ordering key that the log tells of."""

    _keys: dict[str, list[_Run]] = field(factory=dict[str, list[_Run]])

    def add(self, life: Sequence[Step]) -> None:
        """One more stream."""
        birth, job = life[0].recorded, life[-1].after
        key = job.spec.ordering_key
        if key is None:
            return
        leases = (step.recorded for step in life if isinstance(step.recorded.event, Leased))
        number = job.spec.sequence or birth.event_id
        over = life[-1].recorded.event_id if lets_go_on(job) else None
        run = _Run(number, job.id, next(leases, None), over)
        self._keys.setdefault(key, []).append(run)

    def broken(self) -> Iterator[Finding]:
        """Every start before the end of an earlier job of its key."""
        for runs in self._keys.values():
            yield from _out_of_order(sorted(runs, key=lambda run: run.number))


def _out_of_order(runs: Sequence[_Run]) -> Iterator[Finding]:
    last: _Run | None = None
    for run in runs:
        if run.first is not None and last is not None:
            if last.over is None:
                text = f"it started although the earlier job {last.job_id} of its key has not ended"
                yield run.job_id, text, (run.first,)
            elif run.first.event_id < last.over:
                text = f"it started before the earlier job {last.job_id} of its key had ended"
                yield run.job_id, text, (run.first,)
        if last is None or _later(run, last):
            last = run


def _later(run: _Run, last: _Run) -> bool:
    """Whether ``run`` let the next one go on later than ``last`` did."""
    return last.over is not None and (run.over is None or run.over > last.over)
