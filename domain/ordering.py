"""Jobs with one ordering key run in the order in which they were accepted, one at a time.

Who is where in that order is a question to the database; what follows from the answer is said here
and in ``decide``.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from .errors import InvalidValue
from .frozen import frozen
from .job import Job, JobSpec
from .states import ENDED, State
from .values import OnHold

#: Ordering keys in one enqueue.  Each is a lock, and a server holds some ten thousand in all.
KEYS_MAX = 500


@frozen
class Ahead:
    """What a due job with an ordering key or a parent finds before it.

    ``behind`` is the unfinished job that must end first, which cannot end before this transaction
    does, or None: it may start.  ``parent_failed`` tells that the job that it comes after failed.
    ``late`` tells that this open group keeps an earlier item of its key in the inbox: it was
    committed after later ones, and waits for the next group, which must come first.
    """

    behind: UUID | None = None
    parent_failed: bool = False
    late: bool = False


@frozen
class Found:
    """What was found before a job.

    ``parent`` is the job that it comes after while that one is neither finished nor held, and
    ``parent_state`` where it stands or how it ended, None when nobody knows of it.  ``prior`` is
    the nearest earlier job of its key.  ``unsettled`` tells that another may yet turn up before it,
    because a producer has not ended, ``item`` that an earlier item lies in the inbox.  ``running``
    tells that a job of its key is leased.
    """

    parent: UUID | None
    parent_state: State | None
    prior: UUID | None
    unsettled: bool
    item: bool
    running: bool


def stand(job: Job, found: Found) -> Ahead | None:
    """What ``job`` finds before it; None while that cannot be known.

    Nobody is blocked while others may turn up in between, so that few wait for one and the end of
    each lets about one go on.
    """
    if job.spec.after is not None:
        if found.parent is not None:
            return Ahead(found.parent)
        if found.parent_state is State.FAILED:
            return Ahead(parent_failed=True)
        if found.parent_state is not State.DONE:
            return None
    if found.item and job.state is State.GROUPED:
        return Ahead(late=True)
    if found.unsettled or found.item:
        return None
    if found.prior is not None:
        return Ahead(found.prior)
    return None if found.running else Ahead()


def is_lined(job: Job) -> bool:
    """Whether another job may have to end before this one starts."""
    return job.spec.ordering_key is not None or job.spec.after is not None


def check_keys(specs: Sequence[JobSpec]) -> None:
    """Raise InvalidValue for more ordering keys in one enqueue than a server has room for."""
    keys = {spec.ordering_key for spec in specs if spec.ordering_key is not None}
    if len(keys) > KEYS_MAX:
        seen = f"{len(keys):,} different keys in one enqueue"
        remedy = f"enqueue at most {KEYS_MAX} of them at a time, and commit in between"
        raise InvalidValue("ordering_key", seen, remedy)


def unknown_parent(job_id: UUID | str) -> InvalidValue:
    """What is said to a job that is to come after one that is not there."""
    remedy = "enqueue that one first, in this transaction or in one that has been committed"
    return InvalidValue("after", f"job {job_id}, which is not there,", remedy)


def line_up(specs: Sequence[JobSpec]) -> tuple[UUID | None, ...]:
    """Behind whom each of these jobs, accepted in one breath, is born; None: behind nobody.

    A job whose unique key may be taken is nobody to wait for: perhaps it is not born.
    """
    last: dict[str, UUID] = {}
    behind: list[UUID | None] = []
    for spec in specs:
        key = spec.ordering_key
        behind.append(None if key is None or spec.group is not None else last.get(key))
        if key is not None and spec.unique_key is None:
            last[key] = spec.id
    return tuple(behind)


def lets_go_on(job: Job) -> bool:
    """Whether the next job of its key may go on now that ``job`` stands where it does."""
    return job.state in ENDED and not (job.held and job.spec.on_hold is OnHold.BLOCK)


def succeeded(job: Job) -> bool:
    """Whether the jobs that come after ``job`` may start."""
    return job.state is State.DONE
