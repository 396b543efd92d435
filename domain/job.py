"""A job: what it is (its spec, fixed at birth) and where it stands (a small state).

Times are aware datetimes of the database's clock, durations are seconds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from attrs import field

from .errors import InvalidValue
from .frozen import frozen
from .limits import check_count, check_seconds, shown
from .states import State
from .values import EffectKind, Json, OnExhausted, OnExpired, OnHold, Outcome

RETRIES_DEFAULT = 3
TIMEOUT_SECONDS_DEFAULT = 600.0
LEASE_SECONDS_DEFAULT = 600.0
GROUP_SIZE_DEFAULT = 50
GROUP_SIZE_MAX = 1_000


@frozen
class Policy:
    """What any worker must know to end a run of this job, frozen at birth.

    ``retries`` = n allows n + 1 counted runs.  ``timeout`` bounds one run and ``lease`` is the
    first term of a lease, both in seconds.  Delays between attempts are not here: they come from
    the worker that ends a run, and the event carries the time that came of it.
    """

    retries: int = RETRIES_DEFAULT
    timeout: float = TIMEOUT_SECONDS_DEFAULT
    lease: float = LEASE_SECONDS_DEFAULT
    on_exhausted: OnExhausted = OnExhausted.HOLD
    on_expired: OnExpired = OnExpired.RETRY


def _seconds(instance: object, attribute: object, value: float) -> None:
    check_seconds(getattr(attribute, "name", "seconds"), value, least=0.0)


def _size(instance: object, attribute: object, value: int) -> None:
    check_count("max_size", value, least=1, most=GROUP_SIZE_MAX)


def _flag(instance: object, attribute: object, value: bool) -> None:
    if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(getattr(attribute, "name", "flag"), shown(value), "give True or False")


@frozen
class Group:
    """How items with one key join into one job.

    A group is due ``window`` seconds after its newest item, at the latest ``max_hold`` seconds
    after its first, and at once when it holds ``max_size`` items.  With ``serial`` the group key is
    an ordering key too: groups of one key run one after another.  Raises InvalidValue for negative
    seconds or a size outside 1 to 1,000.
    """

    window: float = field(validator=_seconds)
    max_hold: float = field(validator=_seconds)
    max_size: int = field(default=GROUP_SIZE_DEFAULT, validator=_size)
    serial: bool = field(default=False, validator=_flag)


@frozen
class JobSpec:
    """What a job is.  It never changes after birth.

    ``args`` is the JSON document of the arguments; of a grouped job it is ``null``, because its
    arguments are the items in the state.  ``hold_until`` is the time past which a group is not
    held, None for a job that is no group.  One unfinished or held job of a queue has a
    ``unique_key`` at most.

    Jobs with one ``ordering_key`` run in the order in which they were accepted, whatever their
    queues; ``on_hold`` is what this one means for those behind it once it is held.  ``after`` is
    the job whose success this one waits for.  ``sequence`` is the place in the order of a group
    whose first item drew it, None where the birth event's own number is the place.
    """

    id: UUID
    name: str
    args: Json
    enqueued_at: datetime
    queue: str = "default"
    priority: int = 5
    policy: Policy = Policy()
    label: str | None = None
    owner: str | None = None
    subject: str | None = None
    expires_at: datetime | None = None
    group_key: str | None = None
    group: Group | None = None
    hold_until: datetime | None = None
    unique_key: str | None = None
    ordering_key: str | None = None
    on_hold: OnHold = OnHold.BLOCK
    after: UUID | None = None
    sequence: int | None = None


@frozen
class Effect:
    """What a job has done, or begun to do, outside its handler.

    ``key`` names it within the job, ``destination`` where it goes.  Without a ``receipt`` it was
    begun and its end is not known: it is uncertain.
    """

    key: str
    destination: str
    kind: EffectKind
    receipt: Json | None = None


@frozen
class Lease:
    """The right of one worker to one job.

    ``token`` is the stream version of the ``leased`` event: it only grows, and nothing resets it.
    The lease ends at the job's ``due_at``.
    """

    token: int
    worker: str
    started_at: datetime


@frozen
class Job:
    """A job at one version of its stream.

    ``at`` is the time of its newest event.  ``due_at`` is the one column that all waiting goes by:
    when it may start, or while leased, when its lease ends.  ``starts`` counts leases, ``attempts``
    those that count against the budget, ``interruptions`` those that ended without an answer.
    ``effects`` are in the order in which they were begun.  ``blocked_by`` is the job that must end
    before this one may start, however long it has been due.
    """

    spec: JobSpec
    state: State
    version: int
    at: datetime
    due_at: datetime
    starts: int = 0
    attempts: int = 0
    interruptions: int = 0
    lease: Lease | None = None
    items: tuple[Json, ...] = ()
    effects: tuple[Effect, ...] = ()
    outcome: Outcome | None = None
    held: bool = False
    blocked_by: UUID | None = None

    @property
    def id(self) -> UUID:
        """The public id, a UUIDv7."""
        return self.spec.id

    @property
    def deadline(self) -> datetime | None:
        """The end of the current run's time-out, None when it is not leased."""
        if self.lease is None:
            return None
        return self.lease.started_at + timedelta(seconds=self.spec.policy.timeout)

    @property
    def budget_left(self) -> int:
        """Counted runs that may still be made, the current one included."""
        return max(0, self.spec.policy.retries + 1 - self.attempts)

    @property
    def uncertain(self) -> Effect | None:
        """The first effect that was begun and of whose end nothing is known."""
        for each in self.effects:
            if each.receipt is None:
                return each
        return None
