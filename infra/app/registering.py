"""What a decoration makes of a function and its options, all checked when it is registered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...domain import limits
from ...domain.errors import InvalidValue
from ...domain.job import Policy
from ...domain.retry import Retry
from . import arguments
from .errors import HandlerRefused
from .handlers import Face, read
from .options import (
    ENQUEUE_OPTIONS,
    TYPE_OPTIONS,
    check_known,
    executor_of,
    group_of,
    lease_of,
    on_exhausted_of,
    on_expired_of,
    on_hold_of,
    optional_text,
    retry_of,
    timeout_of,
)
from .producer import Defaults, check_queue


def parts_of(
    handler: Any, options: Mapping[str, object], localns: Mapping[str, Any]
) -> tuple[Face, Defaults, Retry]:
    """What a decoration makes of a function and its options.

    Raises InvalidValue for an option, HandlerRefused for the function.
    """
    check_known(options, TYPE_OPTIONS)
    group = group_of(options.get("group"))
    retry = retry_of(options.get("retry", Retry()))
    policy = Policy(
        retry.retries,
        timeout_of(options),
        lease_of(options),
        on_exhausted_of(options.get("on_exhausted", "hold")),
        on_expired_of(options.get("on_expired", "retry")),
    )
    face = read(handler, group is not None, localns)
    for parameter in face.hints:
        if parameter in ENQUEUE_OPTIONS:
            raise HandlerRefused(
                face.name,
                parameter,
                "an option of enqueue has that name",
                "Give the parameter another one",
            )
    name: object = options.get("name", handler.__name__)
    defaults = Defaults(
        limits.check_text("name", name, limits.NAME_BYTES_MAX),  # type: ignore[arg-type]
        check_queue(options.get("queue", "default")),
        limits.check_priority(options.get("priority", limits.PRIORITY_DEFAULT)),  # type: ignore[arg-type]
        policy,
        group,
        optional_text("label", options.get("label"), limits.LABEL_BYTES_MAX),
        executor_of(options.get("executor", "thread")),
        on_hold_of(options.get("on_hold", "block")),
    )
    if defaults.executor == "process":
        _check_process(face)
    if group is None:
        _check_defaults(face)
    return face, defaults, retry


def _check_process(face: Face) -> None:
    """A process finds its handler by module and name, and has no event loop."""
    if face.is_async:
        raise HandlerRefused(
            face.name, None, "it is a coroutine", 'Write `def`, or leave out executor="process"'
        )
    if "<locals>" in face.handler.__qualname__:
        raise HandlerRefused(
            face.name,
            None,
            "another process cannot import it from inside a function",
            "Define it at the top of a module",
        )


def _check_defaults(face: Face) -> None:
    """A default that could not be enqueued is found when the handler is registered."""
    for name, parameter in face.signature.parameters.items():
        if parameter.default is parameter.empty:
            continue
        try:
            arguments.encode(face, {name: parameter.default})
        except InvalidValue as error:
            raise HandlerRefused(
                face.name, name, f"its default cannot be enqueued ({error})", "Give another default"
            ) from error
