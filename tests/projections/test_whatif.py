"""What would have been: a baseline that is what was, and what other policies come to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import Recorded, ReleaseReason
from leasebook.domain.errors import InvalidValue
from leasebook.domain.events import Leased
from leasebook.domain.job import Group
from leasebook.projections.check import check
from leasebook.projections.replay.depth import depth_over_time
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.streams import by_job, steps
from leasebook.projections.whatif.history import History
from leasebook.projections.whatif.measures import Measures, agreement, reckon, share
from leasebook.projections.whatif.picture import comparison_svg
from leasebook.projections.whatif.policy import SETTINGS, Policy, parse
from leasebook.projections.whatif.reading import read
from leasebook.projections.whatif.world import simulate
from tests.support.facts import died, line, log, started, stopped
from tests.support.lives import Life, at, group_spec, item, job_id

END = at(100)


def history(events: Sequence[Recorded], *lines: AuditLine, since: float = -100) -> History:
    return read([steps(each) for each in by_job(events)], gather(lines), at(since), END)


def starts(events: Sequence[Recorded]) -> list[tuple[int, float]]:
    """Every start: the job's number and its second, in order of time."""
    found = [
        ((each.at - at(0)).total_seconds(), each.job_id.int & 0xFFFF)
        for each in events
        if isinstance(each.event, Leased)
    ]
    return [(int(f"{number:x}"), second) for second, number in sorted(found)]


def measured(events: Sequence[Recorded], since: float = -100) -> Measures:
    return reckon([steps(each) for each in by_job(events)], at(since), END).total


def same(events: Sequence[Recorded], *lines: AuditLine, since: float = -100) -> list[Recorded]:
    """The baseline, after it was held against what was recorded and against every invariant."""
    base = simulate(history(events, *lines, since=since), Policy())
    of = [reckon([steps(each) for each in by_job(log_)], at(since), END) for log_ in (events, base)]
    assert agreement(*of).exact, agreement(*of)
    assert list(check(base)) == []
    assert of[0].total.numbers == of[1].total.numbers
    return base


def other(events: Sequence[Recorded], *lines: AuditLine, settings: Sequence[str]) -> list[Recorded]:
    return simulate(history(events, *lines), parse(settings))


def queue_of_three() -> tuple[list[Recorded], AuditLine]:
    """Three jobs of 10 s each on one slot, each leased half a second after that was free."""
    events = count(1)
    lives = [Life(events).enqueue(0, number=number) for number in (1, 2, 3)]
    for number, life in enumerate(lives):
        life.lease(10.5 * number + 0.5).complete(10.5 * number + 10.5)
    return log(*lives), started(-60)


def test_the_baseline_of_a_queue() -> None:
    events, worker = queue_of_three()
    assert starts(same(events, worker)) == [(1, 0.5), (2, 11), (3, 21.5)]


def test_a_worker_that_leases_beside_what_it_records() -> None:
    """The second run began before the end of the first was recorded, on one slot."""
    events = count(1)
    first, second, third = (Life(events).enqueue(0, number=number) for number in (1, 2, 3))
    first.lease(1).complete(4)
    second.lease(3).complete(6)
    third.lease(5).complete(7)
    found = same(log(first, second, third), started(-60))
    assert starts(found) == [(1, 1), (2, 3), (3, 5)]


def test_more_slots() -> None:
    events, worker = queue_of_three()
    found = other(events, worker, settings=["concurrency=3"])
    assert starts(found) == [(1, 0.5), (2, 1), (3, 1.5)], "dispatch takes as long as it did"
    assert starts(other(events, worker, settings=["sync_page.concurrency=0"])) == []
    one = ["concurrency=3", "queue.default.concurrency=1"]
    assert starts(other(events, worker, settings=one)) == [(1, 0.5), (2, 11), (3, 21.5)]


def test_the_same_twice() -> None:
    events, worker = queue_of_three()
    once, again = (other(events, worker, settings=["concurrency=2"]) for _ in range(2))
    assert once == again


def test_failures_retries_and_rate_limits() -> None:
    events = count(1)
    lives = [
        Life(events).enqueue(0, number=1, retries=1).lease(1).fail(2, delay=5).lease(8).fail(9),
        Life(events)
        .enqueue(0, number=2, retries=2)
        .lease(1)
        .fail(3, delay=5)
        .lease(9)
        .complete(11),
        Life(events).enqueue(0, number=3).lease(1).release(2, delay=3).lease(6).complete(7),
        Life(events).enqueue(0, number=4).lease(1).expire(20).lease(21).complete(22),
        Life(events).enqueue(0, number=5, retries=0).lease(1).fail(3, retry=False),
        Life(events).enqueue(0, number=6, retries=0).lease(1).expire(3),
        Life(events).enqueue(0, number=7).lease(1),
        Life(events).enqueue(0, number=8, queue="mail"),
        Life(events).enqueue(0, number=9).lease(1).release(2, ReleaseReason.SNOOZE, delay=900),
    ]
    ours, worker = log(*lives), started(-60, capacity=20)
    same(ours, worker)
    was = measured(ours)
    assert (was.runs, was.retries, was.failed, was.rate_limited, was.interrupted) == (
        12,
        2,
        3,
        1,
        1,
    )
    none = measured(other(ours, worker, settings=["sync_page.retry=0"]))
    assert (none.retries, none.failed, none.completed, none.interrupted) == (0, 5, 1, 0)
    slow = other(ours, worker, settings=["sync_page.retry.delay=50"])
    assert starts(slow)[-2:] == [(1, 53), (2, 54)]
    growing = other(ours, worker, settings=["sync_page.retry.delays=20,30"])
    assert [each for each in starts(growing) if each[0] in (1, 2)][2:] == [(1, 23), (2, 24)]
    more = measured(other(ours, worker, settings=["sync_page.retry=9"]))
    assert more.retries > 2
    assert more.failed <= was.failed


def groups() -> tuple[list[Recorded], AuditLine]:
    """Two groups of one key, ten seconds apart, of two items each."""
    events = count(1)
    group = Group(window=2, max_hold=60)
    first = Life(events).open_group(item(1, 0), seconds=0.25, number=1, group=group)
    first.join(item(2, 1), seconds=1.25).lease(3.5, "w1").complete(5)
    second = Life(events).open_group(item(3, 10), item(4, 10), seconds=10.5, number=2, group=group)
    second.lease(12.75).complete(15.75)
    return log(first, second), started(-60)


@pytest.mark.acceptance("E09")
def test_a_longer_window_makes_fewer_groups() -> None:
    ours, worker = groups()
    same(ours, worker)
    found = other(ours, worker, settings=["sync_page.group.window=20"])
    now = measured(found)
    assert (now.runs, now.groups, now.items) == (1, 1, 4)
    assert starts(found) == [(1, 30.75)], "it goes like the longer of the two"
    assert now.numbers["items per run"] == 4.0
    assert list(check(found)) == []
    held = other(ours, worker, settings=["sync_page.group.window=20", "sync_page.group.max_hold=5"])
    assert starts(held) == [(1, 5.5), (2, 15.75)]
    single = other(ours, worker, settings=["sync_page.group.max_size=1"])
    assert measured(single).groups == 4
    assert list(check(single)) == []


def test_jobs_of_one_key_wait_for_each_other() -> None:
    events = count(1)
    first = Life(events).enqueue(0, number=1, ordering_key="page").lease(1).complete(10)
    second = Life(events).enqueue(0, number=2, ordering_key="page").block(0.5, by=1).unblock(10.25)
    second.lease(11).complete(12)
    child = Life(events).enqueue(0, number=3, after=job_id(1)).block(1, by=1).unblock(10)
    child.lease(12).complete(13)
    ours, worker = log(first, second, child), started(-60, capacity=9)
    base = same(ours, worker)
    assert starts(base) == [(1, 1), (2, 11), (3, 12)]
    assert [each.at for each in base if each.job_id == job_id(2)][1:3] == [at(0.5), at(10.25)]


def test_a_child_of_a_failed_job_never_starts() -> None:
    events = count(1)
    parent = Life(events).enqueue(0, number=1, retries=0).lease(1).fail(2)
    child = Life(events).enqueue(0, number=2, after=job_id(1)).block(1, by=1).unblock(2).orphan(3)
    found = same(log(parent, child), started(-60, capacity=9))
    assert found[-1].event.kind == "failed"


def test_what_was_there_when_the_window_began() -> None:
    events = count(1)
    running = (
        Life(events).enqueue(-50, number=1).lease(-40).fail(5, delay=10).lease(16).complete(17)
    )
    waiting = Life(events).enqueue(-50, number=2, run_at=20).lease(21).complete(22)
    group = Life(events).open_group(item(1, -1), seconds=-1, number=3).join(item(2, 3), seconds=3)
    group.lease(25).complete(26)
    over = Life(events).enqueue(-50, number=4).lease(-49).complete(-45)
    held = Life(events).enqueue(-50, number=5, retries=0).lease(-49).fail(-45)
    moved = Life(events).enqueue(-5, number=6, run_at=90).reschedule(1, 30).lease(31).complete(32)
    behind = Life(events).enqueue(-5, number=7, ordering_key="k").block(-4, by=2).unblock(22)
    behind.lease(40).complete(41)
    block = Life(events).enqueue(-50, number=8, retries=0, ordering_key="b").lease(-49).fail(-45)
    never = Life(events).enqueue(50, number=9, ordering_key="b").block(51, by=8)
    ours = log(running, waiting, group, over, held, moved, behind, block, never)
    base = same(ours, started(-60, capacity=9), since=0)
    assert [each for each in starts(base) if each[1] > 0] == [
        (1, 16),
        (2, 21),
        (3, 25),
        (6, 31),
        (7, 40),
    ]


def test_workers_that_come_and_go_pauses_and_limits() -> None:
    events = count(1)
    lives = [
        Life(events).enqueue(0, number=1).lease(2).expire(10).lease(21, "w2").complete(22),
        Life(events).enqueue(5, number=2).lease(31, "w2").complete(40),
        Life(events).enqueue(6, number=3).lease(40.5, "w2").complete(41),
        Life(events).enqueue(50, number=4).lease(71, "w2").complete(72),
    ]
    lines = (
        started(1), died(10), started(20, "w2", capacity=3),
        line(22, "limit_changed", queue="default", limit=0),
        line(30, "limit_changed", queue="default", limit=1),
        line(50, "queue_paused", queue="default"), line(70, "queue_resumed", queue="default"),
        stopped(90, "w2"),
    )  # fmt: skip
    same(log(*lives), *lines)


def test_who_is_not_in_the_audit_log_was_there_all_the_same() -> None:
    events, _ = queue_of_three()
    assert len(starts(same(events))) == 3


def test_a_log_without_any_job() -> None:
    assert same([], started(-60)) == []
    assert share([], 0.5) == 0
    assert [share([1, 2, 3, 4], part) for part in (0.5, 0.95, 1.0)] == [2, 4, 4]


STARTS = st.tuples(
    st.integers(0, 40), st.integers(1, 12), st.integers(0, 3), st.sampled_from("crxe")
)


@given(
    st.lists(STARTS, min_size=1, max_size=14),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=8),
)
def test_a_simulated_world_is_its_own_baseline(
    jobs: list[tuple[int, int, int, str]], slots: int, items: list[tuple[int, int]]
) -> None:
    """Whatever came of one policy, once recorded, comes of it again to the microsecond."""
    events = count(1)
    lives: list[Life] = []
    # In order of birth, as the numbers of events are.
    for number, (born, length, noise, end) in enumerate(sorted(jobs), 1):
        life = Life(events).enqueue(born, number=number, priority=4 + number % 3)
        begin = born + noise / 8 + 0.001
        life.lease(begin)
        if end == "c":
            life.complete(begin + length)
        elif end == "x":
            life.expire(begin + length).lease(begin + length + 1)
        elif end == "r":
            life.release(begin + length, delay=1).lease(begin + length + 2).complete(70)
        else:
            life.fail(begin + length, delay=2).lease(begin + length + 3).fail(80, delay=900)
        lives.append(life)
    for number, (came, length) in enumerate(sorted(items), 80):
        life = Life(events).open_group(
            item(number, came), seconds=came + 0.5, number=number, queue="pages", name="fold"
        )
        due = (life.now.due_at - at(0)).total_seconds()
        lives.append(life.lease(due + 0.25).complete(due + 0.25 + length))
    worker = started(-60, capacity=slots, queues=("default", "pages"))
    world = other(log(*lives), worker, settings=[f"concurrency={slots}"])
    same(world, worker)


@pytest.mark.parametrize(
    "setting",
    ["", "x", "sync_page.nosuch=1", "concurrency=0", "concurrency=many", "a.retry=-1", ".retry=1",
     "a.group.window=soon", "a.group.window=-1", "a.retry.delays=1,x", "a.group.max_size=1.5"],
)  # fmt: skip
def test_settings_that_are_refused(setting: str) -> None:
    with pytest.raises(InvalidValue):
        parse([setting])


def test_settings() -> None:
    written = [each.replace("NAME", "a.b").replace("queue.a.b", "queue.q.r") for each in SETTINGS]
    policy = parse(f"{each}=2" for each in written)
    assert policy.names == {"a.b"}
    assert (policy.slots, policy.of_queue, policy.of_name) == (2, {"q.r": 2}, {"a.b": 2})
    assert policy.groups == {"a.b": {"window": 2.0, "max_hold": 2.0, "max_size": 2}}
    changed = policy.spec(group_spec(name="a.b"))
    assert changed.group == Group(2, 2, 2)
    assert changed.policy.retries == 2
    assert policy.spec(group_spec()) == group_spec()


def test_the_picture() -> None:
    ours, worker = groups()
    found = other(ours, worker, settings=["sync_page.group.window=20"])
    depths = [depth_over_time(each, at(0), at(50), 100) for each in (ours, found)]
    picture = comparison_svg((depths[0], depths[1]), (measured(ours).waits, measured(found).waits))
    root = ElementTree.fromstring(picture)
    lines = [each for each in root.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 4
    for each in lines:
        points = [tuple(map(float, pair.split(","))) for pair in each.get("points", "").split()]
        assert all(90 <= x <= 890 and 0 <= y <= 560 for x, y in points)
    ElementTree.fromstring(comparison_svg((depths[0], depths[0]), ([], [])))
