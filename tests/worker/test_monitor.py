"""The monitoring line: one a minute for the whole queue, where the operator looks for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from attrs import define, field

from leasebook.infra.caller_ports import Order
from leasebook.infra.memory.database import MemoryDatabase
from leasebook.infra.memory.store import MemoryStore
from leasebook.infra.ports import Store, StoreUnavailable
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.monitor import Monitor, say
from leasebook.projections.depth import Depth
from tests.conformance.making import new_spec
from tests.support.workers import eventually
from tests.support.yard import Yard


@define
class Clock:
    """A database's clock that the test sets."""

    at: datetime = field(factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The lines so far, as the handler of an application gets them."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{record.levelname} {record.getMessage()}")

    handler = Handler()
    logger = logging.getLogger("leasebook.queue")
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    yield said
    logger.removeHandler(handler)
    logger.setLevel(before)


@pytest.mark.acceptance("A09")
def test_the_line_to_the_letter_and_its_level(lines: list[str]) -> None:
    say(Depth(10_000, 2, 10_500))
    say(Depth(10_001, 0, 10_001))
    assert lines == [
        "INFO queue due=10000 in_flight=2 total=10500",
        "ERROR queue due=10001 in_flight=0 total=10001",
    ]


@pytest.mark.acceptance("A09")
def test_one_line_a_minute_however_many_workers_and_starts(lines: list[str]) -> None:
    clock = Clock()
    database = MemoryDatabase(clock)

    def worker() -> Monitor:
        return Monitor(lambda: MemoryStore.on(database), lambda: False)

    first, second = worker(), worker()
    assert first.look() == 60.0
    assert len(lines) == 1
    clock.at += timedelta(seconds=20)
    assert second.look() == 40.0
    assert worker().look() == 40.0, "one that has just started waits too"
    clock.at += timedelta(seconds=40)
    assert second.look() == 60.0
    assert first.look() == 60.0
    assert len(lines) == 2


@pytest.mark.acceptance("A09")
def test_several_workers_at_once_on_postgresql(database_dsn: str, lines: list[str]) -> None:
    barrier = threading.Barrier(6)

    def look() -> None:
        barrier.wait()
        Monitor(lambda: PostgresStore(database_dsn), lambda: False).look()

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lines == ["INFO queue due=0 in_flight=0 total=0"]
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute("update leasebook.checkpoints set at = at - interval '61 seconds'")
        look_again = Monitor(lambda: PostgresStore(database_dsn), lambda: False)
        assert look_again.look() == 60.0
        assert 0 < look_again.look() <= 60.0
        # A stamp from a clock that was ahead.
        connection.execute("update leasebook.checkpoints set at = at + interval '1 day'")
        assert look_again.look() == 60.0
    assert len(lines) == 3


@pytest.mark.acceptance("A09")
def test_who_is_blocked_is_looked_after_where_somebody_is() -> None:
    clock, questions = Clock(), list[str]()
    database = MemoryDatabase(clock)
    database.on_step(questions.append)
    monitor = Monitor(lambda: MemoryStore.on(database), lambda: False)

    def asked() -> bool:
        clock.at += timedelta(seconds=60)
        questions.clear()
        monitor.look()
        return "stranded" in questions

    assert not asked()
    producer = database.begin()
    producer.accept([Order(new_spec(number, ordering_key="k")) for number in (1, 2)])
    producer.commit()
    assert asked()


@pytest.mark.acceptance("A09")
def test_an_outage_is_waited_out_and_told_of_once(
    lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    tries, stopped = list[int](), threading.Event()

    def store() -> Store:
        tries.append(1)
        if len(tries) < 8:
            raise StoreUnavailable("gone")
        stopped.set()
        return MemoryStore(Clock())

    Monitor(store, stopped.is_set, every=0.001, first=0.0).run()
    assert len(lines) == 1
    assert [each.name for each in caplog.records if "cannot be counted" in each.message] == [
        "leasebook.worker"
    ]


@pytest.mark.acceptance("A09")
def test_two_workers_write_one_line_to_standard_error(yard: Yard) -> None:
    workers = [yard.worker(), yard.worker()]
    said = eventually(
        lambda: [line for worker in workers for line in worker.told("queue", total=0)],
        "one of them says the line",
    )
    assert [line["logger"] for line in said] == ["leasebook.queue"]
    assert (said[0]["due"], said[0]["in_flight"]) == (0, 0)
    ((stamped,),) = yard.sql("select at from leasebook.checkpoints where name = 'monitoring line'")
    assert stamped is not None
    for worker in workers:
        assert worker.stop() == 0
