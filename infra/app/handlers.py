"""Reading a function as a handler: which of its parameters is the run, which are arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from attrs import frozen

from .convert import STRICT
from .direct import Direct, direct, direct_item
from .errors import HandlerRefused
from .run import Run

#: The name that a parameter without annotation may have to be given the run.
RUN = "run"


@frozen
class Face:
    """What a handler asks for.

    ``run`` is the name of the parameter that gets the Run, None when there is none.  ``hints`` are
    the declared types of the arguments, in order; ``signature`` is without the run.  For a grouped
    handler ``item`` is the type of one item, and the one argument is the list of them.  ``direct``
    writes arguments whose types are all plain, or the one item of such a type.
    """

    handler: Callable[..., Any]
    run: str | None
    hints: Mapping[str, Any]
    signature: inspect.Signature
    is_async: bool
    positional: tuple[str, ...]
    item: Any = None
    direct: Direct | None = None

    @property
    def name(self) -> str:
        """The handler's own name, qualified by its module."""
        return title(self.handler)

    @property
    def items(self) -> str:
        """The name of the list parameter of a grouped handler."""
        return next(iter(self.hints))

    def call(self, run: object, arguments: Mapping[str, object]) -> Any:
        """Call the handler; an ``async def`` one gives its coroutine."""
        if not self.positional:
            if self.run is None:
                return self.handler(**arguments)
            return self.handler(**{self.run: run}, **arguments)
        given = dict(arguments)
        if self.run is not None:
            given[self.run] = run
        first = [given.pop(name) for name in self.positional if name in given]
        return self.handler(*first, **given)


def title(handler: Any) -> str:
    """A function as errors name it."""
    module = getattr(handler, "__module__", None)
    name = getattr(handler, "__qualname__", None) or type(handler).__name__
    return f"{module}.{name}" if module else str(name)


def read(handler: Any, grouped: bool, localns: Mapping[str, Any]) -> Face:
    """The face of a function, or HandlerRefused saying which parameter is at fault.

    ``localns`` are the names in sight where the function was decorated, so that annotations under
    ``from __future__ import annotations`` find classes that are local to a function.
    """
    _check_kind(handler)
    signature = inspect.signature(handler)
    run: str | None = None
    hints: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        _check_parameter(handler, parameter)
        if name == RUN and parameter.annotation is parameter.empty:
            run = name
            continue
        hint = _hint(handler, parameter, localns)
        if hint is Run:
            if run is not None:
                raise HandlerRefused(title(handler), name, "a second Run", "Take the run once")
            run = name
        elif name == RUN:
            raise HandlerRefused(
                title(handler), name, "the name is kept for the Run", "Give it another name"
            )
        else:
            hints[name] = hint
    rest = [each for name, each in signature.parameters.items() if name != run]
    positional = tuple(
        name for name, each in signature.parameters.items() if each.kind is each.POSITIONAL_ONLY
    )
    signature = signature.replace(parameters=rest, return_annotation=signature.empty)
    face = Face(
        handler,
        run,
        hints,
        signature,
        inspect.iscoroutinefunction(handler),
        positional,
    )
    for name, hint in hints.items():
        _check_hint(handler, name, hint, localns)
    if grouped:
        item = _item(face)
        return attrs.evolve(face, item=item, direct=direct_item(item))
    return attrs.evolve(face, direct=direct(signature, hints))


def _check_kind(handler: Any) -> None:
    if not inspect.isfunction(handler):
        raise HandlerRefused(
            title(handler), None, "it is no function", "Write `def` or `async def`"
        )
    if handler.__name__ == "<lambda>":
        raise HandlerRefused(
            title(handler), None, "a lambda has no types", "Write `def` with annotations"
        )
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise HandlerRefused(
            title(handler), None, "it is a generator", "Let it return instead of yield"
        )


def _check_parameter(handler: Any, parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise HandlerRefused(
            title(handler), parameter.name, "it takes any number", "Name every argument"
        )


def _hint(handler: Any, parameter: inspect.Parameter, localns: Mapping[str, Any]) -> Any:
    if parameter.annotation is parameter.empty:
        raise HandlerRefused(
            title(handler),
            parameter.name,
            "it has no annotation",
            "Declare its type, so that arguments can be checked when they are enqueued",
        )
    named = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = get_type_hints(named, handler.__globals__, dict(localns))
    except Exception as error:
        raise HandlerRefused(
            title(handler),
            parameter.name,
            f"its annotation {parameter.annotation!r} cannot be resolved ({error})",
            "Define the type at the top of a module",
        ) from error
    return hints[parameter.name]


def _check_hint(handler: Any, name: str, hint: Any, localns: Mapping[str, Any]) -> None:
    try:
        if isinstance(hint, type) and attrs.has(hint):
            attrs.resolve_types(hint, localns=dict(localns))
        STRICT.get_structure_hook(hint)
        STRICT.get_unstructure_hook(hint)
    except Exception as error:
        raise HandlerRefused(
            title(handler),
            name,
            f"its type cannot be read from JSON ({str(error)[:200]})",
            "Use plain types, attrs classes or dataclasses defined at the top of a module",
        ) from error


def _item(face: Face) -> Any:
    hints = list(face.hints.items())
    if len(hints) != 1 or get_origin(hints[0][1]) is not list or len(get_args(hints[0][1])) != 1:
        raise HandlerRefused(
            face.name,
            None,
            "a handler with a group takes exactly one list",
            "Write it as in `async def handler(run: Run, items: list[PageChanged])`",
        )
    return get_args(hints[0][1])[0]
