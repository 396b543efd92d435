"""A statement of the in-memory database: alone, and again from its start when it had to wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from .session import Session


class HasSession(Protocol):
    """What can run statements."""

    session: Session


P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=HasSession)


def statement(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """Run a method as one statement."""

    def run(self: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.session.run(method.__name__, lambda: method(self, *args, **kwargs))

    return update_wrapper(run, method)
