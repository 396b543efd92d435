"""Which ordering keys a worker leaves alone for a while, because it could not tell who is next.

A key is passed over longer each time, up to a second, and then tried again, however often.  One
that has been refused for a second may have producers that overlap without a gap, and be refused at
each try: waiting for a quiet instant is worth a transaction of its own, and up to the number that
it found there the order of the key is settled.  A wait in vain has met a long transaction, which
another wait would not shorten: it comes later.  The jobs that others come after are passed over the
same way, and never waited for.

Instants are those of the database.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from attrs import define, evolve, field

from .frozen import frozen

PASS_SECONDS_FIRST = 0.02
PASS_SECONDS_MAX = 1.0
IMPATIENT_SECONDS = 1.0
PATIENCE_SECONDS_FIRST = 0.2
PATIENCE_SECONDS_MAX = 1.0
VAIN_SECONDS_MAX = 30.0
#: Keys that are remembered; those beyond are asked for once more.
KEYS_MAX = 1_000
#: After a wait in vain nobody is waited for, for so many times the longest wait.
CALM_SHARE = 9.0

K = TypeVar("K", bound=Hashable)


@frozen
class _Refused:
    """Refused ``times`` times without a break, and left alone ``until`` then.

    From ``wait_at`` on its producers are to be waited for.
    """

    until: datetime
    times: int
    wait_at: datetime


@define
class Passing(Generic[K]):
    """What one worker remembers of keys, or of jobs that others come after."""

    _refused: dict[K, _Refused] = field(factory=dict[K, _Refused])
    _settled: dict[K, int] = field(factory=dict[K, int])
    _tries: dict[K, int] = field(factory=dict[K, int])
    _calm_until: datetime | None = None

    @property
    def settled(self) -> dict[K, int]:
        """The numbers up to which no producer of a key can come any more."""
        return self._settled

    def keys(self, at: datetime) -> tuple[K, ...]:
        """The keys to be left out now."""
        return tuple(key for key, each in self._refused.items() if each.until > at)

    def told(self, known: Set[K], refused: Set[K], at: datetime) -> None:
        """Of some it is ``known`` who is next, and of others not."""
        self.served(known - refused)
        self.refused(refused, at)

    def refused(self, keys: Iterable[K], at: datetime) -> None:
        """These could not be served; again after a pause that doubles."""
        for key in keys:
            last = self._refused.pop(key, None)
            times = 0 if last is None else last.times + 1
            pause = min(PASS_SECONDS_MAX, PASS_SECONDS_FIRST * 2.0 ** min(times, 10))
            wait_at = at + timedelta(seconds=IMPATIENT_SECONDS) if last is None else last.wait_at
            self._refused[key] = _Refused(at + timedelta(seconds=pause), times, wait_at)
        while len(self._refused) > KEYS_MAX:
            self._forget(next(iter(self._refused)))

    def served(self, keys: Iterable[K]) -> None:
        """Of these it is known who is next."""
        for key in keys:
            if key in self._refused:
                self._forget(key)

    def impatient(self, at: datetime) -> tuple[K, float] | None:
        """A key that is worth waiting for, and for how many seconds at most.

        However many there are: waiting in vain takes a tenth of the time.
        """
        if self._calm_until is not None and at < self._calm_until:
            return None
        for key, each in self._refused.items():
            if each.wait_at <= at:
                patience = PATIENCE_SECONDS_FIRST * 2.0 ** min(self._tries.get(key, 0), 10)
                return key, min(PATIENCE_SECONDS_MAX, patience)
        return None

    def waited(self, key: K, newest: int | None, at: datetime) -> bool:
        """``key`` is settled up to ``newest``; None: its producers were still there.

        One that is settled is tried now, and nothing is held against it any more: perhaps others
        have served it long since.  Whether this was the first wait in vain.
        """
        if newest is not None:
            self.served([key])
            self._settled.pop(key, None)
            self._settled[key] = newest
            if len(self._settled) > KEYS_MAX:
                del self._settled[next(iter(self._settled))]
            return False
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        pause = min(VAIN_SECONDS_MAX, IMPATIENT_SECONDS * 2.0 ** min(tries, 10))
        self._calm_until = at + timedelta(seconds=PATIENCE_SECONDS_MAX * CALM_SHARE)
        if (refused := self._refused.get(key)) is not None:
            self._refused[key] = evolve(refused, wait_at=at + timedelta(seconds=pause))
        return tries == 1

    def _forget(self, key: K) -> None:
        del self._refused[key]
        self._tries.pop(key, None)
