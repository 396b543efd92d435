"""What ``@book.job(...)`` answers: a decorator that knows what kind of job type comes of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from .run import Run
from .typed import GroupedJob, SingleJob

P = ParamSpec("P")
T = TypeVar("T")


class Register(Protocol):
    """Makes a job type of a function, with the names in sight where it was decorated."""

    def __call__(
        self, handler: Any, options: Mapping[str, object], localns: Mapping[str, Any], /
    ) -> Any:
        """Raises HandlerRefused, InvalidValue and NameTaken."""
        ...


def names_in_sight(frame: FrameType | None) -> dict[str, Any]:
    """The local names of the frame that called the one given."""
    caller = None if frame is None else frame.f_back
    return {} if caller is None else dict(caller.f_locals)


class SingleDecorator:
    """Registers a handler whose every enqueue is a job of its own."""

    def __init__(self, register: Register, options: Mapping[str, object]) -> None:
        self._register = register
        self._options = options

    @overload
    def __call__(self, handler: Callable[Concatenate[Run, P], object], /) -> SingleJob[P]: ...
    @overload
    def __call__(self, handler: Callable[P, object], /) -> SingleJob[P]: ...
    def __call__(self, handler: Any, /) -> Any:
        """Register the function under its name, and give the job type in its place."""
        return self._register(handler, self._options, names_in_sight(inspect.currentframe()))


class GroupDecorator:
    """Registers a handler that takes the items of one group as a list."""

    def __init__(self, register: Register, options: Mapping[str, object]) -> None:
        self._register = register
        self._options = options

    @overload
    def __call__(self, handler: Callable[[Run, list[T]], object], /) -> GroupedJob[T]: ...
    @overload
    def __call__(self, handler: Callable[[list[T]], object], /) -> GroupedJob[T]: ...
    def __call__(self, handler: Any, /) -> Any:
        """Register the function under its name, and give the job type in its place."""
        return self._register(handler, self._options, names_in_sight(inspect.currentframe()))
