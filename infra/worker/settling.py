"""The settling thread: what runs tell is recorded beside the ticks that lease, by a connection of
its own.

So two transactions are open at once, and PostgreSQL works on one while Python works on the other.
Nothing else changes: to the tick that leases, the thread is what any other worker is.

A thread that fails rests, longer each time, and ticks record all there is meanwhile: a worker that
can have one connection only goes on, at a lower pace.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from attrs import define, field

from ...domain.job import Job
from ...domain.pacing import backoff
from .answers import Entry
from .bell import Bell
from .outage import LONG_AGO
from .settle import Settled
from .tick import Ask, Ticked, Ticker

#: So few are recorded by a tick that leases, when there is one: a transaction less is worth more.
FEW = 30
#: A tick that leases has so long to ask before the thread begins: while the server looks for its
#: jobs Python is free to decide on a batch, and before that each would wait for the other's turn.
LEAD_SECONDS = 0.001
#: A run whose row somebody has locked is settled when it is free; it is looked at so often.
LOCKED_SECONDS = 0.25


@define(eq=False)
class Settling:
    """What has been told and is not recorded yet.  One batch is on its way at a time.

    So what one job has to tell stays in order.  ``run`` is the thread; everything else is for the
    tick thread only, which is woken when a batch is done.
    """

    ticker: Ticker
    bell: Bell
    _told: list[Entry] = field(factory=list[Entry])
    _batch: tuple[Entry, ...] = ()
    _busy: bool = False
    _follows: bool = False
    _failures: int = 0
    _rests_until: float = LONG_AGO
    _done: Ticked | Exception | None = None
    _not_before: float = LONG_AGO
    _closed: bool = False
    _wanted: Event = field(factory=Event)

    def __len__(self) -> int:
        return len(self._told) + len(self._batch)

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs that somebody told of, each under its lease."""
        return [each.job for each in (*self._batch, *self._told)]

    @property
    def due_at(self) -> float:
        """When there is something to do, in monotonic seconds; not while a batch is on its way."""
        if self._busy:
            return float("inf")
        told_at = self._not_before if self._told else float("inf")
        return min(told_at, self._rests_until if self._failures else float("inf"))

    def note(self, entry: Entry) -> None:
        """Take an entry into the next batch."""
        self._told.append(entry)
        self._not_before = LONG_AGO

    def begin(self, now: float, *, follows: bool) -> None:
        """Let the thread settle what was told, if it has nothing to do and the time has come.

        After a failure also when nothing was told, so that it shows that it is well again.
        ``follows``: a tick that leases begins at this moment.
        """
        if now >= self.due_at and not self.rests(now):
            told = self._told if now >= self._not_before else []
            self._batch, self._told = tuple(told), self._told[len(told) :]
            self._busy, self._follows = True, follows
            self._wanted.set()

    def rests(self, now: float) -> bool:
        """Whether the thread has failed and is left alone: ticks record instead of it."""
        return now < self._rests_until

    def take(self, now: float) -> Ticked | None:
        """What came of a batch that is done; what it could not settle yet comes again.

        Raises the error of one that failed: then all of it comes again.
        """
        if (done := self._done) is None:
            return None
        batch, self._batch, self._done = self._batch, (), None
        self._busy = False
        if isinstance(done, Exception):
            self.give_back(batch)
            self._failures += 1
            self._rests_until = now + backoff(self._failures)
            raise done
        self._failures, self._rests_until = 0, LONG_AGO
        self.leave(done.settled, now)
        return done

    def has_few(self, now: float) -> bool:
        """Whether a tick that leases may as well record all there is."""
        return self._may_lend(now) and len(self._told) <= FEW

    def needs_tick(self, now: float) -> bool:
        """Whether a tick is to record all there is, because the thread cannot."""
        return self.rests(now) and self._may_lend(now)

    def _may_lend(self, now: float) -> bool:
        return bool(self._told) and not self._busy and now >= self._not_before

    def lend(self, now: float) -> Sequence[Entry]:
        """Entries for a tick: few, or all that the thread cannot settle; else none.

        ``leave`` or ``give_back`` follows.
        """
        if not (self.has_few(now) or self.needs_tick(now)):
            return ()
        lent, self._told = self._told, []
        return lent

    def give_back(self, entries: Sequence[Entry]) -> None:
        """All of these come again: the tick that was to settle them failed."""
        self._told = [*entries, *self._told]

    def leave(self, settled: Settled, now: float) -> None:
        """What could not be settled yet comes again."""
        if settled.locked and not settled.again and not self._told:
            self._not_before = now + LOCKED_SECONDS
        self._told = [*settled.again, *settled.locked, *self._told]

    def run(self) -> None:
        """Settle batches until closed."""
        while not self._closed:
            if not self._wanted.wait():
                continue
            self._wanted.clear()
            if self._busy and self._done is None:
                if self._follows:
                    self._wanted.wait(LEAD_SECONDS)
                try:
                    self._done = self.ticker.tick(Ask(self._batch, (), 0))
                except Exception as error:
                    self._done = error
                self.bell.wake()
        self.ticker.store.close()

    def close(self) -> None:
        """End the thread after its batch, and give its connection back."""
        self._closed = True
        self._wanted.set()
