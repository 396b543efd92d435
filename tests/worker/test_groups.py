"""Items of one key become few jobs, whatever producers and collectors do at once."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID

import psycopg
import pytest

from leasebook.domain.events import Enqueued, GroupClosed, ItemsJoined
from leasebook.domain.job import Job
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

PRODUCERS = 20
HOT, COLD = "hot", ("a", "b", "c", "d")


def groups_of(yard: Yard) -> dict[str, list[Job]]:
    """Every group by key, in order of birth."""
    rows = yard.sql(
        "select job_id from leasebook.job_events where kind = 'enqueued.v1' order by event_id"
    )
    found: dict[str, list[Job]] = defaultdict(list)
    for (job_id,) in rows:
        job = yard.job(job_id)
        assert job.spec.group_key is not None
        found[job.spec.group_key].append(job)
    return found


def item_ids(yard: Yard, job_id: UUID) -> list[int]:
    """The items of a group, in order."""
    joined = [each for each in yard.events(job_id) if isinstance(each, ItemsJoined)]
    return [number for each in joined for number in each.item_ids]


def uncollected(yard: Yard) -> int:
    return int(yard.sql("select count(*) from leasebook.group_inbox")[0][0])


@pytest.mark.acceptance("A07")
@pytest.mark.case("C32")
def test_c32_twenty_producers_and_two_collectors_lose_and_double_nothing(yard: Yard) -> None:
    for name in ("a", "b"):
        yard.start(name=name)
    for worker in yard.workers:
        worker.tells("worker started")
    begin = Barrier(PRODUCERS)

    def produce(number: int) -> list[tuple[str, int, int]]:
        """25 items of the hot key and 5 of others, each in a transaction of its own."""
        accepted: list[tuple[str, int, int]] = []
        with psycopg.connect(yard.dsn) as connection:
            begin.wait(30)
            for n in range(30):
                key = HOT if n < 25 else COLD[n % len(COLD)]
                receipt = app.bulk.enqueue(connection, number * 100 + n, group_key=key)
                connection.commit()
                assert receipt.item_id is not None
                accepted.append((key, receipt.item_id, number * 100 + n))
        return accepted

    with ThreadPoolExecutor(PRODUCERS) as pool:
        accepted = [each for part in pool.map(produce, range(PRODUCERS)) for each in part]
    eventually(lambda: uncollected(yard) == 0 and yard.rows() == 0, "every group has run")
    groups = groups_of(yard)
    # An item that was committed late waits for the next group, so there may be an eleventh.
    assert 10 <= len(groups[HOT]) <= 15
    for key in (HOT, *COLD):
        collected: list[int] = []
        for job in groups[key]:
            assert job.state == "done"
            assert len(job.items) <= 50
            numbers = item_ids(yard, job.id)
            assert numbers == sorted(numbers)
            collected += numbers
            arguments = {item: str(n) for owner, item, n in accepted if owner == key}
            assert list(job.items) == [arguments[number] for number in numbers]
        assert sorted(collected) == sorted(item for owner, item, _ in accepted if owner == key)
        assert len(set(collected)) == len(collected)
    assert len(yard.effects()) == sum(len(groups[key]) for key in (HOT, *COLD))


@pytest.mark.acceptance("A07")
@pytest.mark.case("C32")
def test_c32_five_hundred_items_at_once_are_ten_groups_of_fifty(yard: Yard) -> None:
    def produce(number: int) -> None:
        with psycopg.connect(yard.dsn) as connection:
            for n in range(25):
                app.bulk.enqueue(connection, number * 100 + n, group_key=HOT)
                connection.commit()

    with ThreadPoolExecutor(PRODUCERS) as pool:
        list(pool.map(produce, range(PRODUCERS)))
    for name in ("a", "b"):
        yard.start(name=name)
    eventually(lambda: len(yard.effects()) == 10 and yard.rows() == 0, "ten groups have run")
    groups = groups_of(yard)[HOT]
    assert [len(job.items) for job in groups] == [50] * 10
    numbers = [number for job in groups for number in item_ids(yard, job.id)]
    assert numbers == sorted(set(numbers))


@pytest.mark.acceptance("A07")
def test_a07_the_fifty_first_item_opens_the_next_group(yard: Yard) -> None:
    with yard.caller() as caller:
        app.patient.enqueue_many(caller, range(51), group_key="k")
    worker = yard.worker()
    eventually(lambda: len(yard.effects()) == 1, "the full group runs at once")
    eventually(lambda: yard.rows() == 1, "it is done")
    [(state, size)] = yard.sql("select state, cardinality(items) from leasebook.jobs")
    assert (state, size) == ("grouped", 1)
    full, rest = groups_of(yard)["k"]
    assert [len(full.items), len(rest.items)] == [50, 1]
    closed = [each for each in yard.events(full.id) if isinstance(each, GroupClosed)]
    assert [each.reason for each in closed] == ["full"]
    assert worker.stop() == 0


@pytest.mark.acceptance("A08")
@pytest.mark.case("C33")
def test_c33_a_steady_stream_cannot_postpone_a_group_for_ever(yard: Yard) -> None:
    """Window 0.2 s, hold 1 s: an item each 20 ms would push the window on for ever."""
    yard.worker("--poll", "0.2")
    with psycopg.connect(yard.dsn, autocommit=False) as connection:
        count = 0

        def three_runs() -> bool:
            nonlocal count
            app.stream.enqueue(connection, count, group_key="k")
            connection.commit()
            count += 1
            return count % 10 == 0 and len(yard.effects()) >= 3

        eventually(three_runs, "three groups run while items go on arriving")
    eventually(lambda: uncollected(yard) == 0 and yard.rows() == 0, "the last one runs too")
    runs = [job for job in groups_of(yard)["k"] if job.state == "done"]
    numbers = [int(item) for job in runs for item in job.items]
    assert numbers == list(range(count))
    for job in runs:
        born, joined = yard.events(job.id)[:2]
        assert isinstance(born, Enqueued)
        assert isinstance(joined, ItemsJoined)
        held = joined.arrived[0] + timedelta(seconds=1)
        assert job.spec.hold_until == held
        pushed = [each.due_at for each in yard.events(job.id) if isinstance(each, ItemsJoined)]
        assert max(pushed) <= max(held, joined.at)


@pytest.mark.acceptance("A08")
def test_a08_each_item_pushes_the_group_on_and_once_due_it_is_not_postponed(yard: Yard) -> None:
    worker = yard.worker("--concurrency", "1")
    with yard.caller() as caller:
        app.gated_group.enqueue(caller, 1, group_key="k")
    [(first,)] = eventually(
        lambda: yard.sql("select id from leasebook.jobs where state = 'leased'"), "it runs"
    )
    [joined] = [each for each in yard.events(first) if isinstance(each, ItemsJoined)]
    pushed = joined.arrived[0] + timedelta(seconds=0.2)
    assert joined.due_at == max(pushed, joined.at)
    # The only slot is taken: the next group becomes due and waits, and takes an item meanwhile.
    with yard.caller() as caller:
        app.gated_group.enqueue(caller, 2, group_key="k")
    waiting = "select id, due_at from leasebook.jobs where state = 'grouped'"
    [(second, due)] = eventually(
        lambda: yard.sql(f"{waiting} and due_at < clock_timestamp()"), "the next one is due"
    )
    with yard.caller() as caller:
        app.gated_group.enqueue(caller, 3, group_key="k")
    eventually(lambda: uncollected(yard) == 0, "the late item is collected")
    assert yard.sql(waiting) == [(second, due)]
    assert yard.job(second).items == ("2", "3")
    yard.open("group")
    assert yard.over(second).state == "done"
    assert worker.stop() == 0


@pytest.mark.acceptance("A07")
@pytest.mark.case("C35")
def test_c35_items_that_arrive_while_a_group_runs_open_exactly_one_new_group(yard: Yard) -> None:
    with yard.caller() as caller:
        app.gated_group.enqueue(caller, 0, group_key="k")
    yard.worker()
    [(first,)] = eventually(
        lambda: yard.sql("select id from leasebook.jobs where state = 'leased'"), "it runs"
    )
    with yard.caller() as caller:
        for n in range(1, 11):
            app.gated_group.enqueue(caller, n, group_key="k")
    eventually(lambda: uncollected(yard) == 0, "the others are collected")
    yard.open("group")
    eventually(lambda: yard.rows() == 0, "both run")
    one, other = groups_of(yard)["k"]
    assert one.id == first
    assert (one.items, other.items) == (("0",), tuple(map(str, range(1, 11))))
    assert [each.note for each in yard.effects()] == ["0", "1,2,3,4,5,6,7,8,9,10"]


@pytest.mark.fault
@pytest.mark.acceptance("A07")
def test_a_group_whose_worker_dies_runs_again_with_the_same_items(yard: Yard) -> None:
    with yard.caller() as caller:
        app.gated_group.enqueue_many(caller, [1, 2, 3], group_key="k")
    first = yard.worker()
    eventually(lambda: len(yard.effects()) == 1, "it runs")
    with yard.caller() as caller:
        app.gated_group.enqueue(caller, 4, group_key="k")
    first.kill()
    yard.worker()
    eventually(lambda: len(yard.effects()) >= 2, "it runs again")
    yard.open("group")
    eventually(lambda: uncollected(yard) == 0 and yard.rows() == 0, "all is done")
    one, other = groups_of(yard)["k"]
    assert (one.items, other.items) == (("1", "2", "3"), ("4",))
    assert (one.starts, other.starts) == (2, 1)
