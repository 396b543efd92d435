"""When to try again.

``Retry(3, delay=60)`` waits the same time before each attempt; ``Retry(delays=(1, 10, 60))`` takes
the times from a list; ``Retry(5, delay=2, factor=2, cap=3600, jitter=0.1)`` grows.  Jitter is a
hash of job and attempt, not a random number: the same history always gives the same delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from attrs import Factory, field

from .frozen import frozen
from .limits import check_count, check_seconds

RETRIES_DEFAULT = 3
RETRIES_MAX = 1_000
DELAY_SECONDS_DEFAULT = 60.0
CAP_SECONDS_DEFAULT = 86_400.0


def _delays(value: Sequence[float]) -> tuple[float, ...]:
    return tuple(check_seconds("delays", each) for each in value)


@frozen
class Retry:
    """How often and when a failed job runs again.

    ``retries`` = n means at most n + 1 counted runs; left out, it is 3, or the length of
    ``delays``.  All times are seconds.  ``jitter`` = 0.1 spreads a delay evenly over ±10 %; ``cap``
    bounds what comes of growth and jitter.  Raises InvalidValue for anything negative, a factor
    below 1, a jitter outside 0 to 1, or more than 1,000 retries.
    """

    delay: float = field(default=DELAY_SECONDS_DEFAULT, kw_only=True)
    delays: tuple[float, ...] = field(default=(), kw_only=True, converter=_delays)
    factor: float = field(default=1.0, kw_only=True)
    cap: float = field(default=CAP_SECONDS_DEFAULT, kw_only=True)
    jitter: float = field(default=0.0, kw_only=True)
    retries: int = field(
        default=Factory(lambda self: len(self.delays) or RETRIES_DEFAULT, takes_self=True)
    )

    def __attrs_post_init__(self) -> None:
        check_count("retries", self.retries, most=RETRIES_MAX)
        check_seconds("delay", self.delay)
        check_seconds("cap", self.cap)
        check_seconds("factor", self.factor, least=1.0, most=1e6)
        check_seconds("jitter", self.jitter, least=0.0, most=1.0)

    def seconds(self, job_id: UUID, attempt: int) -> float:
        """The wait after counted run ``attempt`` (1 is the first) before the next."""
        if self.delays:
            wait = self.delays[min(attempt, len(self.delays)) - 1]
        else:
            wait = min(self.cap, self._grown(attempt - 1))
        if self.jitter:
            wait *= 1.0 + self.jitter * (2.0 * spread(job_id, attempt) - 1.0)
        return min(self.cap, wait)

    def _grown(self, times: int) -> float:
        try:
            return self.delay * self.factor**times
        except OverflowError:  # the power is beyond every float, and so beyond every cap
            return self.cap if self.delay else 0.0


def spread(job_id: UUID, attempt: int) -> float:
    """A number from 0 up to 1 that hangs on job and attempt only."""
    digest = blake2b(job_id.bytes + attempt.to_bytes(8, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


PRODUCT_EVENTS = Retry(1)
WORKFLOW_ACTIONS = Retry(1)
AI_STEPS = Retry(3)
