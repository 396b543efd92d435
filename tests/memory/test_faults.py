"""Crashes and outages at named steps, and the bell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Thread
from uuid import UUID

import pytest

from leasebook.domain import JobSpec
from leasebook.infra.caller_ports import Order
from leasebook.infra.memory import MemoryDatabase, MemoryLog, MemoryStore
from leasebook.infra.memory.session import CRASHED
from leasebook.infra.ports import Claim, StoreUnavailable

START = datetime(2030, 1, 1, tzinfo=UTC)
CLAIM = Claim(("default",), ("work",), 10, 10)
ORDER = Order(JobSpec(UUID(int=1), "work", "{}", START))


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase(lambda: START)


def accept(database: MemoryDatabase) -> None:
    with database.begin() as caller:
        caller.accept([ORDER])


def outage(at: str) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == at:
            raise StoreUnavailable(f"down at {name}")

    return step


def test_a_crash_rolls_back_and_frees_what_was_locked(database: MemoryDatabase) -> None:
    accept(database)
    store, other = MemoryStore.on(database), MemoryStore.on(database)
    with suppress(StoreUnavailable), store.transaction() as transaction:
        assert len(transaction.claim(CLAIM)) == 1
        store.crash()
        with other.transaction() as another:
            assert len(another.claim(CLAIM)) == 1
        with pytest.raises(StoreUnavailable, match="lost"):
            transaction.claim(CLAIM)


def test_a_crash_that_nobody_notices_fails_the_commit(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    with pytest.raises(StoreUnavailable), store.transaction():
        store.close()


@pytest.mark.parametrize("step", ["begin", "accept", "commit"])
def test_an_outage_before_the_commit_leaves_nothing(database: MemoryDatabase, step: str) -> None:
    database.on_step(outage(step))
    with pytest.raises(StoreUnavailable, match=f"down at {step}"):
        accept(database)
    database.on_step(lambda name: None)
    assert database.jobs() == []
    accept(database)
    assert len(database.jobs()) == 1


def test_an_outage_after_the_commit_hides_that_it_went_through(database: MemoryDatabase) -> None:
    database.on_step(outage("committed"))
    with pytest.raises(StoreUnavailable):
        accept(database)
    assert len(database.jobs()) == 1


def test_a_crash_on_the_way_to_the_commit_leaves_nothing(database: MemoryDatabase) -> None:
    caller = database.begin()
    caller.accept([ORDER])
    database.on_step(lambda name: caller.session.rollback(CRASHED))
    with pytest.raises(StoreUnavailable, match="lost"):
        caller.commit()
    assert database.jobs() == []


def test_a_callers_transaction_ends_once(database: MemoryDatabase) -> None:
    caller = database.begin()
    caller.accept([ORDER])
    assert database.jobs() == []
    caller.commit()
    caller.rollback()
    caller.commit()
    assert len(database.jobs()) == 1
    with pytest.raises(StoreUnavailable, match="committed"):
        caller.accept([ORDER])


def test_a_caller_may_roll_back_inside_its_block(database: MemoryDatabase) -> None:
    with database.begin() as caller:
        caller.accept([ORDER])
        caller.rollback()
    assert database.jobs() == []
    assert MemoryLog(database).job_ids() == []


def test_the_log_tells_what_is_committed(database: MemoryDatabase) -> None:
    log = MemoryLog(database)
    with database.begin() as caller:
        caller.accept([ORDER])
        assert list(log.stream(ORDER.spec.id)) == []
    [recorded] = log.stream(ORDER.spec.id)
    assert (recorded.version, recorded.event.kind) == (1, "enqueued")
    assert list(log.stream(UUID(int=9))) == []


def test_a_ring_before_the_wait_is_heard_once(database: MemoryDatabase) -> None:
    bell, other = database.wakeup(), database.wakeup()
    other.ring()
    other.ring()
    assert bell.wait(0)
    assert not bell.wait(0)
    assert other.wait(0)


def test_a_ring_wakes_another_thread(database: MemoryDatabase) -> None:
    bell, heard = database.wakeup(), list[bool]()
    thread = Thread(target=lambda: heard.append(bell.wait(20)))
    thread.start()
    database.wakeup().ring()
    thread.join(10)
    assert heard == [True]


def test_a_closed_bell_waits_no_more(database: MemoryDatabase) -> None:
    bell, heard = database.wakeup(), list[bool]()
    thread = Thread(target=lambda: heard.append(bell.wait(20)))
    thread.start()
    bell.close()
    thread.join(10)
    assert heard == [False]
