"""What the domain refuses.  Every error says what was refused, what was seen and what to do.

``code`` is stable and made for programs; the text is made for people and may change.
"""

from __future__ import annotations

from typing import ClassVar
from uuid import UUID


class LeasebookError(Exception):
    """The root of every error that leasebook raises on purpose."""

    code: ClassVar[str] = "leasebook"

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross between processes as they are, whatever their makers take."""
        return _again, (type(self), self.args, self.__dict__)


def _again(
    kind: type[LeasebookError], args: tuple[object, ...], state: dict[str, object]
) -> LeasebookError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class InvalidValue(LeasebookError, ValueError):
    """A value was refused before anything was written.

    ``field`` is the path of the value (``args.items[3].when``), ``seen`` what stood there,
    ``remedy`` what to do about it.
    """

    code = "invalid_value"

    def __init__(self, field: str, seen: str, remedy: str) -> None:
        super().__init__(f"{field}: {seen} was refused. {remedy[:1].upper()}{remedy[1:]}.")
        self.field = field
        self.seen = seen
        self.remedy = remedy


class IllegalTransition(LeasebookError):
    """The job's state has no move for this command."""

    code = "illegal_transition"

    def __init__(self, job_id: UUID, command: str, state: str, remedy: str) -> None:
        super().__init__(f"cannot {command} job {job_id}: it is {state}. {remedy}")
        self.job_id = job_id
        self.command = command
        self.state = state


class StaleLease(LeasebookError):
    """A worker wrote with a lease that is no longer the job's: another run, or none, owns it now.

    ``token`` is the writer's, ``current`` the job's (None when nobody holds a lease).
    """

    code = "stale_lease"

    def __init__(self, job_id: UUID, command: str, token: int, current: int | None) -> None:
        now = "no lease is held" if current is None else f"it was superseded by lease {current}"
        super().__init__(
            f"cannot {command} job {job_id} under lease {token}: {now}. Discard this result."
        )
        self.job_id = job_id
        self.command = command
        self.token = token
        self.current = current


class NotDue(LeasebookError):
    """A lease was asked for before the job's time, or expiry before the lease's end."""

    code = "not_due"

    def __init__(self, job_id: UUID, command: str, due: str, at: str) -> None:
        super().__init__(f"cannot {command} job {job_id} at {at}: it is due at {due}. Wait for it.")
        self.job_id = job_id


class GroupRefused(LeasebookError):
    """Items were offered to a group that cannot take them."""

    code = "group_refused"

    def __init__(self, job_id: UUID, why: str) -> None:
        super().__init__(f"cannot join items to job {job_id}: {why}. Open the next group.")
        self.job_id = job_id


class EffectRefused(LeasebookError):
    """An effect was refused: its key stands for another one, or it is not in progress.

    ``key`` is the effect's.
    """

    code = "effect_refused"

    def __init__(self, job_id: UUID, key: str, seen: str, remedy: str) -> None:
        super().__init__(f"effect {_short(key)} of job {job_id} was refused: {seen}. {remedy}.")
        self.job_id = job_id
        self.key = key


class EffectUncertain(LeasebookError):
    """An effect was begun before and nobody knows what came of it: it is not begun again.

    The job is held until an operator says what happened.
    """

    code = "effect_uncertain"

    def __init__(self, job_id: UUID, key: str, destination: str) -> None:
        super().__init__(
            f"effect {_short(key)} of job {job_id} to {_short(destination)} was begun before and "
            "its end is not known, so it is not begun again. "
            "Find out at the destination whether it happened."
        )
        self.job_id = job_id
        self.key = key
        self.destination = destination


class UniqueKeyTaken(LeasebookError):
    """An enqueue was refused because an unfinished or held job of the queue has its unique key.

    Nothing was written and the caller's transaction goes on.  ``job_id``, ``state`` and ``held``
    are those of the job that has the key.
    """

    code = "unique_key_taken"

    def __init__(
        self, queue: str, key: str, job_id: UUID, state: str, held: bool, remedy: str
    ) -> None:
        now = "held" if held else state
        super().__init__(
            f"cannot enqueue with unique key {_short(key)} on queue {_short(queue)}: "
            f"job {job_id} has it and is {now}. {remedy[:1].upper()}{remedy[1:]}."
        )
        self.queue = queue
        self.key = key
        self.job_id = job_id
        self.state = state
        self.held = held


class IdempotencyConflict(LeasebookError):
    """An idempotency key came again with another job name or other arguments.

    Nothing was written and the caller's transaction goes on.  ``job_id`` is the job of the first
    request.
    """

    code = "idempotency_conflict"

    def __init__(self, key: str, job_id: UUID) -> None:
        super().__init__(
            f"cannot enqueue with idempotency key {_short(key)}: it belongs to job {job_id}, "
            "which was asked for with another name or other arguments. "
            "Repeat the request as it was, or give a new key."
        )
        self.key = key
        self.job_id = job_id


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


class DamagedEvent(LeasebookError):
    """The log holds an event of a known kind that cannot be read."""

    code = "damaged_event"

    def __init__(self, job_id: UUID, kind: str, why: str) -> None:
        super().__init__(
            f"an event {kind} of job {job_id} cannot be read: {why}. "
            "Somebody wrote it past leasebook; restore it from a backup."
        )
        self.job_id = job_id
        self.kind = kind


class UnknownEvent(LeasebookError):
    """The log holds an event that this release does not know."""

    code = "unknown_event"

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"event kind {kind!r} is unknown to this release of leasebook. "
            "Install the release that wrote it, or a later one."
        )
        self.kind = kind
