"""What starts had waited for, stretch by stretch of a window."""

from __future__ import annotations

from datetime import datetime

from attrs import Factory, define

from ..replay.clock import micros
from ..replay.waiting import Cause
from ..replay.waits import Wait


@define
class Stretch:
    """``waits`` that ended in one stretch of the window, and what they were spent on together."""

    waits: int = 0
    causes: dict[Cause, int] = Factory(dict[Cause, int])

    @property
    def mean(self) -> int:
        """Microseconds of one wait."""
        return sum(self.causes.values()) // max(1, self.waits)


class WaitsOverTime:
    """The waits of a window in equal stretches; one that goes on counts in the last."""

    def __init__(self, since: datetime, until: datetime, stretches: int) -> None:
        self.since, self.until = since, until
        self.stretches = [Stretch() for _ in range(stretches)]

    def add(self, wait: Wait) -> None:
        """Count one wait."""
        begin, length = micros(self.since), max(1, micros(self.until) - micros(self.since))
        at = micros(wait.started or self.until) - begin
        last = len(self.stretches) - 1
        stretch = self.stretches[max(0, min(last, at * len(self.stretches) // length))]
        stretch.waits += 1
        for each in wait.segments:
            stretch.causes[each.cause] = stretch.causes.get(each.cause, 0) + each.microseconds

    @property
    def causes(self) -> list[Cause]:
        """The causes that occur."""
        return [cause for cause in Cause if any(each.causes.get(cause) for each in self.stretches)]
