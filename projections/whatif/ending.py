"""How a simulated run ends: as the recorded one did, as far as there is one.

Of a job that runs more often than it did, the share of further runs that succeed is that of the
recorded later runs of its name; which ones, hangs on the job and the number of the run only.
"""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from ...domain.commands import Command, Complete, ExpireLease, Fail, Release
from ...domain.events import Completed, Event, Failed, LeaseExpired, Released, RetryScheduled
from ...domain.job import Job
from ...domain.retry import DELAY_SECONDS_DEFAULT, spread
from ...domain.values import ExpiryCause, Outcome
from .history import History, Source, Taken
from .policy import Policy

INTERRUPTED = frozenset({Outcome.LOST, Outcome.ABORTED})
#: A late run of a name of which no later run was recorded.
NO_RECOVERY = 0.0


@frozen
class Endings:
    """The ends of runs under a policy."""

    history: History
    policy: Policy

    def length(self, source: Source, number: int) -> int | None:
        """How long run ``number`` (0 is the first) takes in microseconds; None: it goes on."""
        if number < len(source.runs):
            return source.runs[number].length
        known = [each.length for each in source.runs if each.length is not None]
        return self.history.lengths.get(source.spec.name, known[-1] if known else 0)

    def command(self, source: Source, number: int, job: Job, at: datetime) -> Command:
        """What is said at the end of run ``number`` of a leased job."""
        assert job.lease is not None
        end = self.end(source, number)
        token = job.lease.token
        match end:
            case Released():
                delay = (end.due_at - end.at).total_seconds()
                return Release(at, token, end.reason, delay, end.note)
            case LeaseExpired():
                return ExpireLease(at, token, ExpiryCause.WORKER_LOST)
            case RetryScheduled():
                delay = (end.due_at - end.at).total_seconds()
                return Fail(at, token, end.error, self._delay(source, job, delay))
            case Failed() if end.outcome in INTERRUPTED:
                return ExpireLease(at, token, ExpiryCause.WORKER_LOST)
            case Failed():
                again = end.outcome is Outcome.EXHAUSTED
                delay = self._delay(source, job, self._usual(source))
                return Fail(at, token, end.error, delay, retry=again)
            case Completed():
                return Complete(at, token, "null", end.outcome)
            case _:
                return Complete(at, token)

    def end(self, source: Source, number: int) -> Event | None:
        """The recorded event that run ``number`` ends like."""
        if number < len(source.runs):
            return source.runs[number].end
        last = source.runs[-1].end if source.runs else None
        share = self.history.recovery.get(source.spec.name, NO_RECOVERY)
        if last is None or isinstance(last, Completed | Released | LeaseExpired):
            return None
        return None if spread(source.spec.id, number) < share else last

    def _delay(self, source: Source, job: Job, recorded: float) -> float:
        retry = self.policy.delays.get(source.spec.name)
        return recorded if retry is None else retry.seconds(source.spec.id, job.attempts + 1)

    def _usual(self, source: Source) -> float:
        """The delay that the job was given last; the default's when it was given none."""
        delays = [
            (end.due_at - end.at).total_seconds()
            for end in (each.end for each in source.runs)
            if isinstance(end, RetryScheduled)
        ]
        return delays[-1] if delays else DELAY_SECONDS_DEFAULT


def noise(history: History, source: Source, number: int, blocks: int) -> int:
    """What dispatch takes of run ``number``, beside a free slot, in microseconds.

    ``blocks`` counts the jobs that it has been blocked by since the run before.
    """
    if number < len(source.runs):
        known = source.runs[number].noise
        return known[min(blocks, len(known) - 1)]
    if number == len(source.runs) and source.patience is not None:
        known = source.patience
        # In its last stretch it was not leased in all that time.
        return known[blocks] if blocks < len(known) - 1 else known[-1] + 1
    return history.noise.get(source.spec.name, 0)


def lag(source: Source, number: int, blocks: int) -> int:
    """How long after the end of the job before it a job's turn is noticed, in microseconds."""
    known = source.runs[number].lags if number < len(source.runs) else ()
    return known[blocks - 1] if 0 < blocks <= len(known) else 0


def wanted(source: Source, number: int) -> str | None:
    """Who had this run when it was recorded."""
    taken: Taken | None = source.runs[number] if number < len(source.runs) else None
    return None if taken is None else taken.worker
