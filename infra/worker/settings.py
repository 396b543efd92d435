"""The settings of a worker.  Each is named here once; nothing else holds a number of seconds."""

from __future__ import annotations

from attrs import frozen

from ...domain.admission import SUSPECT_SECONDS_DEFAULT


@frozen
class WorkerSettings:
    """How a worker paces itself.  All times are seconds.

    ``poll`` is the longest sleep between two looks at the queue.  A worker that dies is noticed
    after ``dead_after`` by workers that have themselves beaten without a gap, and at once by its
    own heartbeat child; ``death_detection=False`` leaves both to the end of the lease.  A stop
    gives handlers ``drain`` to finish, then ``cancel`` to clean up, then itself ``settle`` to
    record how they ended, and ``farewell`` for a call in hand and for signing off; the sum is
    ``stop_seconds``.  A job whose handler could not begin within ``begin`` after its lease,
    because another one blocks the event loop, is given back.  A run past its time-out that the
    worker has not ended after ``overrun`` is ended by the heartbeat; a process that besides shows
    no sign of life for ``dead_after`` is killed.  An outage of the store is an ERROR once it has
    lasted for ``outage_error``.
    """

    concurrency: int = 10
    queues: tuple[str, ...] = ()
    poll: float = 1.0
    heartbeat: float = 10.0
    dead_after: float = 30.0
    death_detection: bool = True
    drain: float = 30.0
    cancel: float = 5.0
    settle: float = 5.0
    farewell: float = 4.0
    begin: float = 1.0
    overrun: float = 5.0
    outage_error: float = 60.0
    suspect_seconds: float = SUSPECT_SECONDS_DEFAULT
    collect_items: int = 1_000
    collect_every: float = 0.1
    sweep_jobs: int = 1_000
    floor_seconds: float = 5.0

    @property
    def stop_seconds(self) -> float:
        """How long a whole stop takes at most, from the signal to the end of the process."""
        return self.drain + self.cancel + self.stop_now_seconds

    @property
    def stop_now_seconds(self) -> float:
        """How long a stop takes at most that waits for no handler."""
        return self.settle + self.farewell
