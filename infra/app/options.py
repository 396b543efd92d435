"""The options of a job type and of one enqueue: their names, their types, their checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict
from uuid import UUID

from ...domain import limits
from ...domain.errors import InvalidValue
from ...domain.job import LEASE_SECONDS_DEFAULT, TIMEOUT_SECONDS_DEFAULT, Group
from ...domain.retry import Retry
from ...domain.values import OnConflict, OnExhausted, OnExpired, OnHold
from ..caller_ports import Receipt
from .errors import suggestion
from .plain import kind

#: PostgreSQL's timestamptz goes further, but a datetime of Python does not.
YEAR_MAX = 9000


class TypeOptions(TypedDict, total=False):
    """What ``@book.job(...)`` takes beside ``group``.

    ``timeout`` bounds one run and ``lease`` is the first term of a lease, both in seconds.
    ``on_exhausted`` says whether a job that failed for good waits for an operator, ``on_hold``
    whether the later jobs of its ordering key wait with it or go on without it.  ``on_expired``
    says whether a run that was interrupted (by its lease, its worker, its time-out, a stop) is made
    again while the budget lasts, or the job aborted.  ``executor`` is where a ``def`` handler runs:
    in a thread of the worker, or in a process of its own kind.
    """

    name: str
    queue: str
    priority: int
    retry: Retry | int
    timeout: float
    lease: float
    on_exhausted: Literal["hold", "drop"] | OnExhausted
    on_expired: Literal["retry", "abort"] | OnExpired
    on_hold: Literal["block", "skip"] | OnHold
    label: str | None
    executor: Literal["thread", "process"]


class SharedOptions(TypedDict, total=False):
    """What an enqueue of one job or of many takes beside the arguments and the keys.

    What is left out comes from the job type.  ``run_at`` is an aware datetime, ``delay`` seconds
    or a timedelta from acceptance: one of the two.  A job that still waits at ``expires_at`` fails
    as expired.  ``on_conflict`` says what is wanted when an unfinished or held job of the queue has
    the unique key: refuse the new job, keep the old one for both, or move the old one to the new
    start.  ``after`` is a job, or its receipt, that must have succeeded before this one starts.
    """

    queue: str
    priority: int
    run_at: datetime | None
    delay: float | timedelta | None
    label: str | None
    owner: str | None
    subject: str | None
    expires_at: datetime | None
    after: Receipt | UUID | None
    on_conflict: Literal["reject", "keep", "replace"] | OnConflict


class EnqueueOptions(SharedOptions, total=False):
    """What an enqueue takes beside the arguments (see SharedOptions).

    Of one queue one unfinished or held job may have a ``unique_key``.  An ``idempotency_key`` names
    this request for good: when it comes again its answer is the same job.  Jobs with one
    ``ordering_key``, of any type and queue, run in the order of their acceptance, one at a time.
    """

    unique_key: str | None
    idempotency_key: str | None
    ordering_key: str | None


class ManyOptions(SharedOptions, total=False):
    """What an enqueue of many takes; a function tells the key of each (None: it has none)."""

    unique_key: Callable[[Any], str | None] | str | None
    idempotency_key: Callable[[Any], str | None] | str | None
    ordering_key: Callable[[Any], str | None] | str | None


class ItemOptions(TypedDict, total=False):
    """What an enqueue to a group takes beside the item and its ``group_key``.

    A group has its priority, label, owner and subject from its first item; items of another owner
    begin a group of their own.  When it is due is for its window to say, so there is neither
    ``run_at`` nor ``delay``, and no ``expires_at``, which would take other items with it.
    """

    queue: str
    priority: int
    label: str | None
    owner: str | None
    subject: str | None


TYPE_OPTIONS = frozenset({*TypeOptions.__annotations__, "group"})
#: Options that a function may tell for each of many.
KEYS = ("group_key", "unique_key", "idempotency_key", "ordering_key")
ENQUEUE_OPTIONS = frozenset({*SharedOptions.__annotations__, *KEYS})


def check_known(
    given: Iterable[str], known: Iterable[str], what: str = "an unknown option"
) -> None:
    """Raise InvalidValue for an option that is not known, saying which was probably meant."""
    names = frozenset(known)
    for name in given:
        if name not in names:
            raise InvalidValue(str(name)[:60], what, suggestion(str(name), names))


def optional_text(field: str, value: object, bytes_max: int) -> str | None:
    """A label, owner or subject, or None."""
    return None if value is None else limits.check_text(field, _any(value), bytes_max)


def retry_of(value: object) -> Retry:
    """The policy that ``retry=`` means: an int is that many retries with the usual delay."""
    if isinstance(value, Retry):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Retry(value)
    raise InvalidValue("retry", kind(value), "give a Retry, or how many retries as an int from 0")


def on_exhausted_of(value: object) -> OnExhausted:
    """What ``on_exhausted=`` means."""
    try:
        return OnExhausted(_any(value))
    except ValueError:
        raise InvalidValue("on_exhausted", kind(value), 'give "hold" or "drop"') from None


def on_expired_of(value: object) -> OnExpired:
    """What ``on_expired=`` means."""
    try:
        return OnExpired(_any(value))
    except ValueError:
        raise InvalidValue("on_expired", kind(value), 'give "retry" or "abort"') from None


def on_hold_of(value: object) -> OnHold:
    """What ``on_hold=`` means."""
    try:
        return OnHold(_any(value))
    except ValueError:
        raise InvalidValue("on_hold", kind(value), 'give "block" or "skip"') from None


def after_of(value: object) -> UUID | None:
    """What ``after=`` means: a job's id, or the receipt of its enqueue."""
    if isinstance(value, Receipt):
        if value.id is None:
            raise InvalidValue("after", "the receipt of an item", "wait for jobs, not for items")
        return value.id
    if value is None or isinstance(value, UUID):
        return value
    raise InvalidValue("after", kind(value), "give the receipt or the id of a job")


def on_conflict_of(value: object) -> OnConflict:
    """What ``on_conflict=`` means."""
    try:
        return OnConflict(_any(value))
    except ValueError:
        raise InvalidValue(
            "on_conflict", kind(value), 'give "reject", "keep" or "replace"'
        ) from None


def executor_of(value: object) -> str:
    """What ``executor=`` means."""
    if value not in ("thread", "process"):
        raise InvalidValue("executor", kind(value), 'give "thread" or "process"')
    return str(value)


def group_of(value: object) -> Group | None:
    """What ``group=`` means."""
    if value is None or isinstance(value, Group):
        return value
    raise InvalidValue("group", kind(value), "give Group(window=..., max_hold=...) in seconds")


def seconds_of(field: str, options: Mapping[str, object], default: float) -> float:
    """A duration of the job type: positive, at most a year."""
    value = options.get(field, default)
    return limits.check_seconds(field, _any(value), least=0.001, most=366 * 86_400.0)


def timeout_of(options: Mapping[str, object]) -> float:
    """The time-out of one run, in seconds."""
    return seconds_of("timeout", options, TIMEOUT_SECONDS_DEFAULT)


def lease_of(options: Mapping[str, object]) -> float:
    """The first term of a lease, in seconds."""
    return seconds_of("lease", options, LEASE_SECONDS_DEFAULT)


def start_of(options: Mapping[str, object]) -> tuple[datetime | None, float]:
    """``run_at`` and ``delay`` of an order: at most one of them is given."""
    run_at, delay = options.get("run_at"), options.get("delay")
    if run_at is not None and delay is not None:
        raise InvalidValue("delay", "a delay beside a run_at", "give one of the two")
    if delay is None:
        return None if run_at is None else time_of("run_at", run_at), 0.0
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    return None, limits.check_seconds("delay", _any(delay))


def time_of(field: str, value: object) -> datetime:
    """An aware datetime that every part of the way can hold."""
    moment = limits.check_time(field, _any(value))
    if moment.year > YEAR_MAX:
        raise InvalidValue(field, f"the year {moment.year}", f"stay before the year {YEAR_MAX}")
    return moment


def _any(value: object) -> Any:
    """A value whose type the called check looks at itself."""
    return value
