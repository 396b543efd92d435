"""Due jobs that a worker leaves alone: when it looks for them, and what it has told of them."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from ..ports import Stranger
from .logs import log
from .outage import LONG_AGO

#: So many due jobs are looked through, at the start and later.
FIRST_SAMPLE_JOBS, SAMPLE_JOBS = 20_000, 1_000


@define
class Strangers:
    """Looked for ``every`` so many seconds, and told of once each."""

    every: float
    _look_at: float = LONG_AGO
    _jobs: int = FIRST_SAMPLE_JOBS
    _told: set[Stranger] = field(factory=set[Stranger])

    def sample(self, now: float) -> int:
        """How many due jobs a look at this monotonic second is to go through; 0 for none."""
        return self._jobs if now >= self._look_at else 0

    def met(self, strangers: Sequence[Stranger], now: float) -> None:
        """Take what a look has found, and tell of those that are new."""
        self._jobs = SAMPLE_JOBS
        self._look_at = now + self.every
        for each in strangers:
            if each not in self._told:
                self._told.add(each)
                reason = "this worker has no handler of the name"
                if each.format is not None:
                    reason = f"row format {each.format} is of a newer release"
                log.warning("jobs left alone", name=each.name, reason=reason)
