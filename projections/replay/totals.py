"""What many waits add up to, and the longest of them."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heappushpop

from attrs import Factory, define

from .waiting import Cause
from .waits import Wait


@define
class CauseTotal:
    """How many waits had to do with a cause, for how many microseconds in all and at most."""

    waits: int = 0
    microseconds: int = 0
    longest: int = 0


@define
class Totals:
    """The sums of the waits that were added, and the ``keep`` longest of them."""

    keep: int
    over: int = 0
    going_on: int = 0
    microseconds: int = 0
    causes: dict[Cause, CauseTotal] = Factory(dict[Cause, CauseTotal])
    _longest: list[tuple[int, int, Wait]] = Factory(list[tuple[int, int, Wait]])

    def add(self, wait: Wait) -> None:
        """Count one wait."""
        if wait.started is None:
            self.going_on += 1
        else:
            self.over += 1
        self.microseconds += wait.microseconds
        for cause in dict.fromkeys(each.cause for each in wait.segments):
            spent, total = wait.of(cause), self.causes.setdefault(cause, CauseTotal())
            total.waits += 1
            total.microseconds += spent
            total.longest = max(total.longest, spent)
        # Among equals the first, and no two waits are compared.
        entry = (wait.microseconds, -self.waits, wait)
        if len(self._longest) < self.keep:
            heappush(self._longest, entry)
        elif self.keep:
            heappushpop(self._longest, entry)

    @property
    def waits(self) -> int:
        """How many waits were added."""
        return self.over + self.going_on

    def shares(self) -> Iterator[tuple[Cause, CauseTotal, str]]:
        """Each cause that there was, in their order, with its share of all time as a text."""
        for cause in Cause:
            if total := self.causes.get(cause):
                share = 100 * total.microseconds / max(1, self.microseconds)
                yield cause, total, f"{share:.1f} %"

    @property
    def longest(self) -> list[Wait]:
        """The longest waits, the longest first."""
        return [wait for _, _, wait in sorted(self._longest, reverse=True)]
