"""I17 on random queues: wait segments sum exactly, and capacity is what a slow count gives."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import Recorded, State
from leasebook.projections.replay.capacity import Capacity
from leasebook.projections.replay.clock import MICROSECOND, micros
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.replay.stints import Stints
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.replay.waits import waits
from tests.support.facts import died, line, started, stopped
from tests.support.lives import Life, at, item

WORKERS = ("w1", "w2", "w3")
QUEUES = ("default", "mail")
NAMES = ("sync_page", "send", "unheard_of")
#: A grid that is finer than a second, with ties.
MOMENTS = st.integers(0, 240).map(lambda quarter: quarter / 4)
STEPS = st.integers(1, 40).map(lambda quarter: quarter / 4 + 0.000_001)


@st.composite
def lives(draw: st.DrawFn) -> list[Recorded]:
    """A few jobs that are born, wait, run, fail and end as they may."""
    numbers = count(1)
    made: list[Recorded] = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        life, now = Life(numbers), draw(MOMENTS) / 4
        if draw(st.booleans()):
            life.open_group(item(number, now), seconds=now, number=number)
        else:
            run_at = draw(st.none() | MOMENTS)
            queue, priority = draw(st.sampled_from(QUEUES)), draw(st.integers(4, 6))
            life.enqueue(now, run_at, number=number, queue=queue, priority=priority)
        for _ in range(draw(st.integers(0, 6))):
            now += draw(STEPS)
            _go_on(draw, life, now)
        made += life.stream
    return made


def _go_on(draw: st.DrawFn, life: Life, now: float) -> None:
    if life.now.state is State.LEASED:
        match draw(st.sampled_from(("complete", "fail", "release", "expire"))):
            case "complete":
                life.complete(now)
            case "fail":
                life.fail(now, delay=draw(MOMENTS))
            case "release":
                life.release(now, delay=draw(MOMENTS))
            case _:
                life.expire(now)
    elif life.now.state in (State.DONE, State.FAILED):
        return
    elif life.now.blocked_by is not None:
        life.unblock(now)
    elif draw(st.integers(0, 3)) == 0:
        life.block(now, by=draw(st.integers(7, 9)))
    else:
        due = (life.now.due_at - at(0)).total_seconds()
        life.lease(max(now, due) + draw(st.sampled_from((0.0, 0.25, 3.0))), draw(WORKER))


WORKER = st.sampled_from(WORKERS)


@st.composite
def audit(draw: st.DrawFn) -> list[AuditLine]:
    """Workers that come and go, pauses and limits, in order of time."""
    lines: list[AuditLine] = []
    for worker in draw(st.sets(WORKER)):
        queues = draw(st.sets(st.sampled_from(QUEUES), min_size=1))
        begin, capacity = draw(MOMENTS) - 10, draw(st.integers(1, 3))
        names = draw(st.none() | st.sets(st.sampled_from(NAMES)).map(tuple))
        lines.append(started(begin, worker, capacity, tuple(sorted(queues)), names))
        if draw(st.booleans()):
            end = begin + draw(MOMENTS) + 0.25
            lines.append(draw(st.sampled_from((stopped, died)))(end, worker))
    for queue in QUEUES:
        for moment in sorted(draw(st.sets(MOMENTS, max_size=4))):
            kind = draw(st.sampled_from(("queue_paused", "queue_resumed")))
            lines.append(line(moment, kind, queue=queue))
        for moment in sorted(draw(st.sets(MOMENTS, max_size=2))):
            limit = draw(st.none() | st.integers(0, 2))
            lines.append(line(moment, "limit_changed", queue=queue, limit=limit))
    return sorted(lines, key=lambda each: each.at)


@pytest.mark.acceptance("I17")
@given(lives(), audit(), st.none() | MOMENTS, st.none() | MOMENTS)
def test_segments_sum_exactly(
    log: list[Recorded], lines: list[AuditLine], until: float | None, known: float | None
) -> None:
    facts = gather(lines)
    end = None if until is None else max(at(until), max(each.at for each in log))
    found = list(waits(log, facts, end, None if known is None else at(known)))
    leases = sum(each.event.kind == "leased" for each in log)
    assert sum(wait.started is not None for wait in found) == leases
    for wait in found:
        over = wait.started or end
        assert over is not None
        whole = (over - wait.since) // MICROSECOND
        assert wait.microseconds == whole == sum(each.microseconds for each in wait.segments)
        assert all(each.microseconds > 0 for each in wait.segments)
        if known is not None and over <= at(known):
            assert wait.of(Cause.BUSY) == wait.of(Cause.NO_WORKER) == 0


RUNS = st.lists(
    st.tuples(WORKER, st.sampled_from(QUEUES), MOMENTS, st.none() | MOMENTS), max_size=12
)


@given(RUNS, audit(), st.sampled_from(QUEUES), st.sampled_from(NAMES), MOMENTS, MOMENTS)
def test_capacity_is_what_a_slow_count_gives(
    runs: list[tuple[str, str, float, float | None]],
    lines: list[AuditLine],
    queue: str,
    name: str,
    one: float,
    other: float,
) -> None:
    facts = gather(lines)
    whole = [
        (worker, name, since, None if length is None else since + length)
        for worker, name, since, length in runs
    ]
    stints = Stints()
    for worker, name, since, until in whole:
        end = None if until is None else micros(at(until))
        stints.add(worker, name, micros(at(since)), end)
    begin, over = sorted((one, other))
    split = Capacity(facts, stints).split(queue, name, micros(at(begin)), micros(at(over)))
    counted = {"none": 0, "unhandled": 0, "busy": 0, "free": 0}
    for quarter in range(round(begin * 4), round(over * 4)):
        counted[_room(lines, whole, (queue, name), quarter / 4 + 0.125)] += 250_000
    assert split._asdict() == counted


def _room(
    lines: list[AuditLine],
    runs: list[tuple[str, str, float, float | None]],
    place: tuple[str, str],
    now: float,
) -> str:
    """The same by looking at everything again at one moment."""
    queue, name = place
    here = at(0) + timedelta(seconds=now)
    running = [
        (worker, name)
        for worker, name, since, until in runs
        if since <= now and (until is None or until > now)
    ]
    past = [each for each in lines if each.at <= here]
    gone = {each.worker for each in past if each.kind in ("worker_stopped", "worker_died")}
    serving = [
        each
        for each in past
        if each.kind == "worker_started"
        and each.worker not in gone
        and queue in each.detail["queues"]
    ]
    if not serving:
        return "none"
    able = [each for each in serving if name in each.detail.get("names", [name])]
    if not able:
        return "unhandled"
    limits = [
        each.detail["limit"]
        for each in past
        if each.kind == "limit_changed" and each.detail["queue"] == queue
    ]
    if limits and limits[-1] is not None and sum(q == queue for _, q in running) >= limits[-1]:
        return "busy"
    free = any(
        sum(worker == each.worker for worker, _ in running) < each.detail["capacity"]
        for each in able
    )
    return "free" if free else "busy"
