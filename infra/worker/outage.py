"""Trouble with the store: when to try again, and what is said of it.

However long an outage lasts and however often the store is tried, there is one line at its start,
one ERROR when it has lasted for a minute, and one when it is over.
"""

from __future__ import annotations

from attrs import define, field

from ...domain.pacing import backoff
from ..ports import StoreUnavailable
from .failure import describe
from .logs import log

LONG_AGO = float("-inf")
#: A worker that stops has little time left and no work that it could come too early for.
STOPPING_SECONDS_MAX = 1.0


@define
class Outage:
    """What fails at present.  ``doing`` is one of the few things that a tick loop does.

    A look may go through while no tick does, on a standby or without a grant; the outage is over
    when everything that failed has succeeded.  Seconds are monotonic.
    """

    error_after: float
    _failing: set[str] = field(factory=set[str])
    _said: set[str] = field(factory=set[str])
    _failures: int = 0
    _since: float = LONG_AGO
    _failed_at: float = LONG_AGO
    _retry_at: float = LONG_AGO

    def failed(self, doing: str, error: Exception, now: float, *, alone: bool = False) -> None:
        """Note a failure, and say so if it is news.

        Unless it fails ``alone``, nothing else is tried either until a pause is over.
        """
        if not self._failing:
            self._since, self._failures, self._said = now, 0, set()
        self._failing.add(doing)
        left = self._since + self.error_after - now
        if not alone:
            self._failures += 1
            self._failed_at = now
            pause = backoff(self._failures)
            # The ERROR comes when it is due, and not up to a whole pause later.
            self._retry_at = now + (min(pause, left) if left > 0 else pause)
        if isinstance(error, StoreUnavailable):
            event, what = "store unavailable", str(error)[:300]
            if self._news(event):
                log.warning(event, error=what)
        else:
            event, what = "tick failed", describe(error)
            if self._news(event):
                log.error(event, error=what, exc_info=error)
        if left <= 0 and self._news("still"):
            log.error("store still unavailable", seconds=round(now - self._since, 1), error=what)

    def succeeded(self, doing: str, now: float) -> bool:
        """Note a success; whether an outage is over with it."""
        if doing not in self._failing:
            return False
        self._failing.discard(doing)
        # What is left to prove itself is not made to wait for what went well.
        self._retry_at = LONG_AGO
        if self._failing:
            return False
        seconds = round(now - self._since, 1)
        log.info("store available again", failures=self._failures, seconds=seconds)
        return True

    def of(self, doing: str) -> bool:
        """Whether this failed and has not succeeded since."""
        return doing in self._failing

    def patience(self, now: float, *, stopping: bool) -> float:
        """How many seconds to wait before the store is tried again; 0 when all is well."""
        retry_at = self._retry_at
        if stopping:
            retry_at = min(retry_at, self._failed_at + STOPPING_SECONDS_MAX)
        return max(0.0, retry_at - now)

    def _news(self, event: str) -> bool:
        if event in self._said:
            return False
        self._said.add(event)
        return True
