"""Jobs for the suite: deterministic ids, and short ways to the states that a test starts from."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from attrs import evolve as replace

from leasebook.domain import change
from leasebook.domain.commands import (
    Command,
    Complete,
    Enqueue,
    ExpireLease,
    Item,
    OpenGroup,
    TakeLease,
)
from leasebook.domain.job import Group, Job, JobSpec
from leasebook.domain.log import Change
from leasebook.domain.values import ExpiryCause
from leasebook.infra.caller_ports import Order
from leasebook.infra.enrolment import Enrolment
from leasebook.infra.ports import Claim, Store

T = TypeVar("T")

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
_numbers = count(1_000_000)
NEVER_AT = datetime.fromisoformat("2020-01-01T00:00:00+00:00")
"""Stands in a spec whose time the store or a decision will stamp."""

GROUP = Group(window=10, max_hold=60, max_size=50)


def job_id(number: int) -> UUID:
    """An id of the shape of a UUIDv7; they sort by number."""
    return UUID(int=0x01900000_0000_7000_8000_000000000000 + number)


def new_spec(number: int = 1, **fields: Any) -> JobSpec:
    """A spec with id ``number``; any field may be given."""
    given: dict[str, Any] = {
        "name": "work",
        "args": f'{{"n":{number}}}',
        "enqueued_at": NEVER_AT,
        **fields,
    }
    return JobSpec(id=job_id(number), **given)


def item_spec(args: str, key: str = "k", **fields: Any) -> JobSpec:
    """A spec of one item for the group ``key``."""
    given: dict[str, Any] = {"group": GROUP, "name": "fold", **fields}
    return new_spec(args=args, group_key=key, **given)


def items(numbers: Sequence[int], key: str = "k", **fields: Any) -> list[Order]:
    """Orders of one item each, whose arguments are the numbers."""
    return [Order(item_spec(str(number), key, **fields)) for number in numbers]


def birth(spec: JobSpec, at: datetime, run_at: datetime | None = None) -> Change:
    """The birth of a single job at ``at``."""
    return change(None, Enqueue(at, replace(spec, enqueued_at=at), run_at))


def group_birth(number: int, at: datetime, size: int = 1, **fields: Any) -> Change:
    """The birth of group ``number`` at ``at``, with ``size`` items that arrived then."""
    spec = replace(item_spec("null", **fields), id=job_id(number), enqueued_at=at)
    return change(None, OpenGroup(at, spec, things(size, at)))


def things(size: int, at: datetime) -> tuple[Item, ...]:
    """Items that arrived at ``at``; no inbox holds them."""
    return tuple(Item(next(_numbers), at, str(number)) for number in range(size))


def now(store: Store) -> datetime:
    """The database's time."""
    return store.outlook(["default"], ["work"]).at


def write(store: Store, *changes: Change) -> list[Job]:
    """Append in a transaction of their own; none of them may miss."""
    with store.transaction() as transaction:
        missed = transaction.append(changes)
    assert not missed
    return [each.after for each in changes]


def tell(store: Store, job: Job, command: Command) -> Job:
    """Decide and append one command."""
    return write(store, change(job, command))[0]


def enqueue(store: Store, *specs: JobSpec, ago: timedelta = HOUR) -> list[Job]:
    """Single jobs that were enqueued, and due, ``ago`` before now."""
    at = now(store) - ago
    return write(store, *(birth(spec, at) for spec in specs))


def lease(store: Store, job: Job, worker: str = "w1") -> Job:
    """Lease a job at its due time."""
    return tell(store, job, TakeLease(job.due_at, worker))


def interrupt(store: Store, job: Job) -> Job:
    """Let a run of the job be interrupted: it is waiting again, and suspect."""
    leased = lease(store, job)
    assert leased.lease is not None
    lost = ExpireLease(leased.at, leased.lease.token, ExpiryCause.WORKER_LOST)
    return tell(store, leased, lost)


def complete(job: Job, result: str = "null") -> Change:
    """The change that completes a leased job."""
    assert job.lease is not None
    return change(job, Complete(job.at + SECOND, job.lease.token, result))


def wanted(
    *queues: str,
    names: Sequence[str] = ("work", "fold"),
    limit: int = 100,
    suspects: int = 100,
    since: datetime | None = None,
    worker: str | None = None,
) -> Claim:
    """A claim; without queues it is for the default one."""
    return Claim(queues or ("default",), tuple(names), limit, suspects, since, worker=worker)


def claimed(store: Store, claim: Claim) -> list[UUID]:
    """The ids that a claim gives, in its order; the transaction leases none of them."""
    with store.transaction() as transaction:
        return [job.id for job in transaction.claim(claim)]


def ids(*numbers: int) -> list[UUID]:
    """The ids of jobs by number."""
    return [job_id(number) for number in numbers]


class Undo(Exception):
    """Rolls back."""


@contextmanager
def undone(transaction: AbstractContextManager[T]) -> Generator[T]:
    """Roll the transaction back when the block has ended well."""
    with suppress(Undo), transaction as opened:
        yield opened
        raise Undo


def worker(name: str) -> Enrolment:
    """A worker whose id is its name."""
    return Enrolment(name, name, "host", 1, 10, ("default",), "1", ("work", "fold"))
