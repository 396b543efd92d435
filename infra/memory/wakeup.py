"""The bell between threads of one process."""

from __future__ import annotations

from threading import Condition

from attrs import define, field


@define(eq=False)
class Bell:
    """What all listeners of one database hear.  ``rings`` counts, so that no ring is missed."""

    condition: Condition = field(factory=Condition)
    rings: int = 0


class MemoryWakeup:
    """Implements ``ports.Wakeup``.  A ring before the wait is heard, several are heard as one."""

    def __init__(self, bell: Bell) -> None:
        self._bell = bell
        self._heard = bell.rings
        self._closed = False

    def wait(self, seconds: float) -> bool:
        """Wait until rung or closed, at most ``seconds``; whether it was rung."""
        bell = self._bell
        with bell.condition:
            bell.condition.wait_for(lambda: self._closed or bell.rings > self._heard, seconds)
            rung = bell.rings > self._heard
            self._heard = bell.rings
            return rung and not self._closed

    def ring(self) -> None:
        """Wake whoever listens to this database."""
        with self._bell.condition:
            self._bell.rings += 1
            self._bell.condition.notify_all()

    def close(self) -> None:
        """Stop listening."""
        with self._bell.condition:
            self._closed = True
            self._bell.condition.notify_all()
