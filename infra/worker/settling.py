"""The settling thread: what runs tell is recorded beside the ticks that lease, by a connection of
its own.

So two transactions are open at once, and PostgreSQL works on one while Python works on the other.
Nothing else changes: to the tick that leases, the thread is what any other worker is.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from attrs import define, field

from ...domain.job import Job
from .answers import Entry
from .bell import Bell
from .outage import LONG_AGO
from .settle import Settled
from .tick import Ask, Ticked, Ticker

#: So few are recorded by a tick that leases, when there is one: a transaction less is worth more.
FEW = 30
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
        """When the next batch may begin, in monotonic seconds; not while one is on its way."""
        return float("inf") if self._batch or not self._told else self._not_before

    def note(self, entry: Entry) -> None:
        """Take an entry into the next batch."""
        self._told.append(entry)
        self._not_before = LONG_AGO

    def begin(self, now: float) -> None:
        """Let the thread settle what was told, if it has nothing to do and the time has come."""
        if now >= self.due_at:
            self._batch, self._told = tuple(self._told), []
            self._wanted.set()

    def take(self, now: float) -> Ticked | None:
        """What came of a batch that is done; what it could not settle yet comes again.

        Raises the error of one that failed: then all of it comes again.
        """
        if (done := self._done) is None:
            return None
        batch, self._batch, self._done = self._batch, (), None
        if isinstance(done, Exception):
            self.give_back(batch)
            raise done
        self.leave(done.settled, now)
        return done

    def has_few(self, now: float) -> bool:
        """Whether a tick that leases may as well record all there is."""
        return now >= self.due_at and len(self._told) <= FEW

    def lend(self, now: float) -> Sequence[Entry]:
        """Few entries for a tick that leases, else none; ``leave`` or ``give_back`` follows."""
        if not self.has_few(now):
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
            if self._batch:
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
