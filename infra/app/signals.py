"""What a handler raises to say how its run ended, when that is neither success nor an error.

A signal is no failure of the program: the worker turns it into the next state of the job.
"""

from __future__ import annotations

from ...domain.errors import InvalidValue
from ...domain.limits import check_seconds


class Signal(Exception):
    """The root of what a handler may raise on purpose."""


class RetryIn(Signal):
    """Run this job again after ``seconds``; spends an attempt, as a failure does.

    The delay stands in for the one of the job type's retry policy; when the budget is spent the
    job fails all the same.  Raises InvalidValue for anything but a number of seconds from 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = check_seconds("seconds", seconds)
        super().__init__(f"asked for another attempt in {self.seconds:g} s")


class Snooze(Signal):
    """Run this job again after ``seconds`` and spend nothing: the time is not ripe yet.

    Raises InvalidValue for anything but a number of seconds from 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = check_seconds("seconds", seconds)
        super().__init__(f"snoozes for {self.seconds:g} s")


class RateLimited(Signal):
    """Somebody else's limit was met: run again after ``retry_after`` seconds and spend nothing.

    Raises InvalidValue for anything but a number of seconds from 0.
    """

    def __init__(self, retry_after: float) -> None:
        self.retry_after = check_seconds("retry_after", retry_after)
        super().__init__(f"rate limited for {self.retry_after:g} s")


class Fail(Signal):
    """The run failed for ``reason``; without ``retry`` another one would be of no use.

    With ``retry`` it is a plain failure with a chosen text.  Raises InvalidValue for a reason that
    is no text.
    """

    def __init__(self, reason: str, retry: bool = False) -> None:
        if not isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue("reason", f"a {type(reason).__name__}", "give a text")
        if not isinstance(retry, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue("retry", f"a {type(retry).__name__}", "give True or False")
        self.reason = reason
        self.retry = retry
        super().__init__(reason)


class Rejected(Fail):
    """The destination has refused for ``reason``, and another run would be of no use.

    Raised inside of an effect's block it says that the effect has certainly not happened.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
