"""Why did it start late: every cause by itself, then together."""

from __future__ import annotations

from itertools import count

import pytest

from leasebook.domain import Recorded, ReleaseReason
from leasebook.domain.events import Enqueued, Event, Leased, Unblocked
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.replay.waits import Wait, waits
from tests.support.facts import died, line, log, started, stopped
from tests.support.lives import Life, at, item, job_id, spec

SECOND = 1_000_000


def told(wait: Wait) -> dict[str, float]:
    """The seconds of a wait by cause."""
    assert sum(each.microseconds for each in wait.segments) == wait.microseconds
    return {each.cause.value: each.microseconds / SECOND for each in wait.segments}


def explained(events: list[Recorded], *lines: AuditLine) -> list[dict[str, float]]:
    return [told(wait) for wait in waits(events, gather(lines))]


@pytest.mark.acceptance("E08")
def test_what_was_planned_stands_in_the_stream() -> None:
    life = Life().enqueue(run_at=10).lease(11).fail(12, delay=60).lease(75)
    life.release(76, ReleaseReason.SNOOZE, delay=5).lease(81).complete(82)
    first, second, third = waits(log(life), gather([started(-5)]))
    assert told(first) == {"delay": 10, "dispatch": 1}
    assert told(second) == {"retry wait": 60, "dispatch": 3}
    assert told(third) == {"delay": 5}
    assert (first.since, first.started, first.start) == (at(0), at(11), 1)
    assert second.since == at(12), "the wait begins where the run ended"
    assert (third.version, third.worker) == (6, "w1")


def test_a_group_is_held_for_its_items() -> None:
    life = Life().open_group(item(1)).join(item(2, 4), seconds=4).lease(14.5)
    assert explained(log(life), started(-5)) == [{"group hold": 14, "dispatch": 0.5}]


def test_moved_to_another_time() -> None:
    life = Life().enqueue(run_at=100).reschedule(10, 20).lease(21)
    assert explained(log(life), started(-5)) == [{"delay": 20, "dispatch": 1}]


@pytest.mark.acceptance("E08")
def test_nobody_was_there() -> None:
    life = Life().enqueue().lease(30, "w2")
    assert explained(log(life), started(-9), stopped(5), started(28, "w2")) == [
        {"no worker": 23, "dispatch": 7}
    ]


def test_a_worker_of_other_queues_is_nobody() -> None:
    life = Life().enqueue().lease(30, "w2")
    others = started(-9, "w9", queues=("mail",)), started(29, "w2")
    assert explained(log(life), *others) == [{"no worker": 29, "dispatch": 1}]


@pytest.mark.acceptance("E08")
def test_nobody_had_a_handler() -> None:
    life = Life().enqueue().lease(30, "w2")
    other = started(-9, names=("send", "other"))
    new = started(20, "w2", names=("send", "sync_page"))
    assert explained(log(life), other, new) == [{"no handler": 20, "dispatch": 10}]
    assert explained(log(life), other, stopped(5), new) == [
        {"no worker": 15, "no handler": 5, "dispatch": 10}
    ]


def test_a_worker_of_an_older_release_may_have_had_the_handler() -> None:
    life = Life().enqueue().lease(30, "w2")
    lines = started(-9), started(20, "w2", names=("sync_page",))
    assert explained(log(life), *lines) == [{"dispatch": 30}]


def test_a_free_slot_of_a_worker_without_the_handler_is_none() -> None:
    events = count(1)
    long = Life(events).enqueue(number=1).lease(0).complete(20)
    send = Life(events).enqueue(1, number=2, name="send").lease(5, "w2")
    late = Life(events).enqueue(2, number=3).lease(21)
    workers = started(-9, names=("sync_page",)), started(-9, "w2", 9, names=("send",))
    assert explained(log(long, send, late), *workers) == [
        {},
        {"dispatch": 4},
        {"busy": 18, "dispatch": 1},
    ]


def test_a_dead_worker_counts_until_it_is_found_dead() -> None:
    events = count(1)
    killed = Life(events).enqueue(number=1).lease(1).expire(31)
    waiting = Life(events).enqueue(2, number=2).lease(40, "w2")
    lines = started(-9), died(31), started(35, "w2")
    *_, wait = explained(log(killed, waiting), *lines)
    assert wait == {"busy": 29, "no worker": 4, "dispatch": 5}


@pytest.mark.acceptance("E08")
def test_every_slot_was_taken() -> None:
    events = count(1)
    long = Life(events).enqueue(number=1).lease(0).complete(20)
    late = Life(events).enqueue(1, number=2).lease(20.25).complete(21)
    assert explained(log(long, late), started(-9)) == [{}, {"busy": 19, "dispatch": 0.25}]


def test_a_second_slot_is_room() -> None:
    events = count(1)
    long = Life(events).enqueue(number=1).lease(0).complete(20)
    late = Life(events).enqueue(1, number=2).lease(2)
    assert explained(log(long, late), started(-9, capacity=2)) == [{}, {"dispatch": 1}]


def test_a_limit_keeps_free_slots_empty() -> None:
    events = count(1)
    long = Life(events).enqueue(number=1).lease(0).complete(20)
    late = Life(events).enqueue(1, number=2).lease(20.25)
    lines = started(-9, capacity=9), line(-8, "limit_changed", queue="default", limit=1)
    assert explained(log(long, late), *lines)[1] == {"busy": 19, "dispatch": 0.25}
    lifted = line(11, "limit_changed", queue="default", limit=None)
    assert explained(log(long, late), *lines, lifted)[1] == {"busy": 10, "dispatch": 9.25}


@pytest.mark.acceptance("E08")
def test_others_were_ahead() -> None:
    events = count(1)
    first = Life(events).enqueue(0, number=1).lease(10)
    second = Life(events).enqueue(0, number=2).lease(20)
    urgent = Life(events).enqueue(1, number=3, priority=9).lease(25)
    third = Life(events).enqueue(2, number=4).lease(26)
    ours = log(first, second, urgent, third)
    assert explained(ours, started(-9, capacity=9)) == [
        {"dispatch": 10},
        {"behind": 10, "dispatch": 10},
        {"dispatch": 24},
        {"behind": 23, "dispatch": 1},
    ]


def test_jobs_of_other_queues_are_ahead_by_priority_only() -> None:
    events = count(1)
    same = Life(events).enqueue(number=1, queue="mail").lease(5)
    higher = Life(events).enqueue(number=2, queue="mail", priority=6).lease(3)
    elsewhere = Life(events).enqueue(number=3, queue="mail", priority=9).lease(4, "w2")
    waiting = Life(events).enqueue(number=4).lease(10)
    both = started(-9, capacity=9, queues=("default", "mail"))
    mail = started(-9, "w2", capacity=9, queues=("mail",))
    *_, wait = explained(log(same, higher, elsewhere, waiting), both, mail)
    assert wait == {"behind": 3, "dispatch": 7}


@pytest.mark.acceptance("E08")
def test_it_was_blocked_by_an_earlier_job() -> None:
    life = Life().enqueue(ordering_key="page").block(1, by=2).unblock(10).block(10.5, by=3)
    (wait,) = waits(log(life.unblock(20).lease(21)), gather([started(-9)]))
    assert [(each.cause.value, each.by, each.microseconds) for each in wait.segments] == [
        ("blocked by", job_id(2), 9 * SECOND),
        ("blocked by", job_id(3), 9.5 * SECOND),
        ("dispatch", None, 2.5 * SECOND),
    ]
    assert wait.microseconds == 21 * SECOND
    assert wait.of(Cause.BLOCKED) == 18.5 * SECOND


def test_born_behind_another_and_delayed_as_well() -> None:
    events: tuple[Event, ...] = (
        Enqueued(at(0), spec(ordering_key="page"), at(5), blocked_by=job_id(2)),
        Unblocked(at(8), at(8)),
        Leased(at(9), "w1", at(600), 1),
    )
    stream = [Recorded(job_id(1), number, number, 7, each) for number, each in enumerate(events, 1)]
    assert explained(stream, started(-9)) == [{"delay": 5, "blocked by": 3, "dispatch": 1}]


def test_effects_of_a_run_are_no_waits() -> None:
    life = Life().enqueue().lease(1).begin(2).effect(3).fail(4, delay=0).lease(6).complete(7)
    assert explained(log(life), started(-9)) == [{"dispatch": 1}, {"dispatch": 2}]


@pytest.mark.acceptance("E08")
def test_its_queue_was_paused() -> None:
    life = Life().enqueue(run_at=5).lease(40)
    lines = (
        started(-9),
        line(2, "queue_paused", queue="default"),
        line(3, "queue_paused", queue="mail"),
        line(20, "queue_resumed", queue="default"),
        line(30, "queue_paused", queue="default"),
        line(35, "queue_resumed", queue="default"),
    )
    assert explained(log(life), *lines) == [{"delay": 5, "paused": 20, "dispatch": 15}]


def test_a_pause_that_is_not_over() -> None:
    life = Life().enqueue()
    paused = line(5, "queue_paused", queue="default")
    (wait,) = waits(log(life), gather([started(-9), paused]), until=at(60))
    assert told(wait) == {"paused": 55, "dispatch": 5}
    assert (wait.started, wait.worker, wait.start) == (None, None, 1)


def test_what_goes_on_waiting_is_told_when_asked() -> None:
    events = count(1)
    running = Life(events).enqueue(number=1).lease(1)
    over = Life(events).enqueue(number=2).lease(1).complete(2)
    waiting = Life(events).enqueue(number=3).lease(1).fail(2, delay=60)
    ours = log(running, over, waiting)
    assert len(list(waits(ours, gather([started(-9)])))) == 3
    *_, last = waits(ours, gather([started(-9)]), until=at(10))
    assert (last.job_id, last.start, told(last)) == (job_id(3), 2, {"retry wait": 8})


def test_missing_facts_are_unknown() -> None:
    life = Life().enqueue(run_at=4).lease(20)
    assert explained(log(life)) == [{"delay": 4, "unknown": 16}], "who took it never started"
    (wait,) = waits(log(life), gather([started(-9)]), known_from=at(12))
    assert told(wait) == {"delay": 4, "unknown": 8, "dispatch": 8}
    (wait,) = waits(log(life), gather([started(-9)]), known_from=at(99))
    assert told(wait) == {"delay": 4, "unknown": 16}


def test_a_stream_without_its_birth_has_no_wait() -> None:
    life = Life().enqueue().lease(5)
    assert list(waits(life.stream[1:], gather([started(-9)]))) == []


def test_causes_are_in_one_order_and_none_comes_twice() -> None:
    life = Life().enqueue(run_at=100).reschedule(10, 20).reschedule(30, 40).lease(50)
    (wait,) = waits(log(life), gather([started(-9)]))
    assert [each.cause for each in wait.segments] == [Cause.DELAY, Cause.DISPATCH]
    assert told(wait) == {"delay": 30, "dispatch": 20}
    assert wait.of(Cause.DELAY) == 30 * SECOND
    assert wait.of(Cause.BUSY) == 0
