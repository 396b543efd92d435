"""What waiting means in memory: told at once in one thread, real between threads, or scheduled."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event, Thread
from uuid import UUID

import pytest

from leasebook.domain import Job, JobSpec, change
from leasebook.domain.commands import Enqueue, TakeLease
from leasebook.domain.log import Change
from leasebook.infra.caller_ports import Order
from leasebook.infra.memory import MemoryDatabase, MemoryStore, MemoryTransaction, WouldBlock
from leasebook.infra.ports import Claim, StoreUnavailable

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(clock: Clock) -> MemoryDatabase:
    return MemoryDatabase(clock, lock_timeout=30)


@pytest.fixture
def opened(database: MemoryDatabase) -> Generator[list[MemoryTransaction]]:
    """Two transactions that are open at once, begun by the test's own thread."""
    with ExitStack() as stack:
        stores = [MemoryStore.on(database) for _ in range(2)]
        yield [stack.enter_context(store.transaction()) for store in stores]


def enqueue(database: MemoryDatabase, *numbers: int) -> list[Job]:
    specs = [JobSpec(UUID(int=number), "work", "{}", START) for number in numbers]
    with database.begin() as caller:
        caller.accept([Order(spec) for spec in specs])
        return list(caller.load([spec.id for spec in specs]).values())


def leased(job: Job, worker: str = "w1") -> Change:
    return change(job, TakeLease(job.due_at, worker))


def test_one_thread_is_told_at_once(
    database: MemoryDatabase, opened: list[MemoryTransaction]
) -> None:
    [job] = enqueue(database, 1)
    first, second = opened
    first.append([leased(job)])
    with pytest.raises(WouldBlock) as caught:
        second.append([leased(job, "w2")])
    assert caught.value.holder == first.xid
    assert caught.value.code == "would_block"
    first.session.commit()
    assert [each.after.id for each in second.append([leased(job, "w2")])] == [job.id]


def test_a_blocked_append_has_written_nothing(
    database: MemoryDatabase, opened: list[MemoryTransaction]
) -> None:
    jobs = enqueue(database, 1, 2, 3)
    first, second = opened
    first.append([leased(jobs[2])])
    with pytest.raises(WouldBlock):
        second.append([leased(job, "w2") for job in jobs])
    assert [len(second.stream(job.id)) for job in jobs] == [1, 1, 1]
    assert list(second.leased_by("w2", 10)) == []


def test_a_birth_waits_for_an_uncommitted_birth_of_the_same_id(
    database: MemoryDatabase, opened: list[MemoryTransaction]
) -> None:
    born = change(None, Enqueue(START, JobSpec(UUID(int=1), "work", "{}", START)))
    first, second = opened
    first.append([born])
    with pytest.raises(WouldBlock):
        second.append([born])
    first.session.rollback()
    assert list(second.append([born])) == []


def test_a_scheduler_is_asked_instead(
    database: MemoryDatabase, opened: list[MemoryTransaction]
) -> None:
    [job] = enqueue(database, 1)
    first, second = opened
    first.append([leased(job)])
    told: list[int] = []

    def let_the_other_end(block: WouldBlock) -> None:
        told.append(block.holder)
        first.session.rollback()

    database.on_block(let_the_other_end)
    assert list(second.append([leased(job, "w2")])) == []
    assert told == [first.xid]


def test_between_threads_a_deadlock_ends_one_of_two(database: MemoryDatabase) -> None:
    jobs = enqueue(database, 1, 2)
    both_hold = Barrier(2, timeout=30)
    errors: list[str] = []

    def work(mine: Job, theirs: Job) -> None:
        try:
            with MemoryStore.on(database).transaction() as transaction:
                transaction.append([leased(mine)])
                both_hold.wait()
                transaction.append([leased(theirs)])
        except StoreUnavailable as error:
            errors.append(str(error))

    threads = [Thread(target=work, args=pair) for pair in (jobs, reversed(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    [error] = errors
    assert error.startswith("deadlock")
    assert database.waiting() == 0


def test_between_threads_a_lock_is_waited_for_only_so_long(clock: Clock) -> None:
    database = MemoryDatabase(clock, lock_timeout=0.01)
    [job] = enqueue(database, 1)
    held, answered = Event(), Event()

    def hold() -> None:
        with MemoryStore.on(database).transaction() as transaction:
            transaction.append([leased(job)])
            held.set()
            answered.wait(30)

    holder = Thread(target=hold)
    holder.start()
    assert held.wait(30)
    with (
        pytest.raises(StoreUnavailable, match="lock time-out"),
        MemoryStore.on(database).transaction() as transaction,
    ):
        transaction.append([leased(job, "w2")])
    answered.set()
    holder.join(30)
    with MemoryStore.on(database).transaction() as transaction:
        assert [each.lease.worker for each in transaction.leased_by("w1", 9) if each.lease] == [
            "w1"
        ]


def test_threads_share_a_queue_and_start_each_job_once(database: MemoryDatabase) -> None:
    jobs = enqueue(database, *range(200))
    started: list[UUID] = []

    def work(name: str) -> None:
        store = MemoryStore.on(database)
        while True:
            with store.transaction() as transaction:
                taken = transaction.claim(Claim(("default",), ("work",), 3, 3))
                assert not transaction.append([leased(job, name) for job in taken])
            if not taken:
                return
            started.extend(job.id for job in taken)

    threads = [Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(started) == [job.id for job in jobs]


def test_time_never_goes_backwards(clock: Clock, database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    first = store.outlook([], []).at
    clock.at -= timedelta(hours=1)
    assert store.outlook([], []).at == first
    clock.at += timedelta(hours=2)
    assert store.outlook([], []).at == START + timedelta(hours=1)
