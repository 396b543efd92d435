"""Any job and the whole queue as of any moment, and what changed between two."""

from __future__ import annotations

from itertools import count

import pytest

from leasebook.domain import Recorded, State, fold
from leasebook.projections.replay.at import concerns, is_open, job_at, queue_at, tally
from leasebook.projections.replay.choosing import Choice
from leasebook.projections.replay.diff import diff, moves
from leasebook.projections.replay.runs import runs
from leasebook.projections.status import STATUSES, Status, status
from leasebook.projections.streams import steps
from tests.support.facts import log
from tests.support.lives import Life, at, item, job_id


def busy_queue() -> list[Recorded]:
    events = count(1)
    return log(
        Life(events).enqueue(number=1).lease(1).complete(5),
        Life(events).enqueue(number=2, retries=0).lease(2).fail(3),
        Life(events).enqueue(4, number=3, queue="mail").lease(6).fail(7).lease(90, "w2#2"),
        Life(events).open_group(item(1), number=4).lease(12),
    )


@pytest.mark.acceptance("E07", "Q10")
def test_a_job_at_every_version_and_moment() -> None:
    life = Life().enqueue(run_at=5).lease(6).fail(7).lease(70).complete(71)
    for number in range(1, 6):
        expected = fold(each.event for each in life.stream[:number])
        assert job_at(life.stream, version=number) == expected
        assert job_at(life.stream, life.stream[number - 1].at) == expected
    assert job_at(life.stream, at(-1)) is None
    assert job_at(life.stream) == life.now
    early = job_at(life.stream, at(6.5), version=99)
    assert early is not None
    assert early.state is State.LEASED
    assert job_at(life.stream[1:]) is None, "without its birth"


@pytest.mark.acceptance("E07")
def test_the_whole_queue_as_of_a_moment() -> None:
    ours = busy_queue()
    assert list(queue_at(ours, at(-1))) == []
    assert tally(queue_at(ours, at(0))) == {("default", "queued"): 2, ("default", "grouped"): 1}
    assert tally(queue_at(ours, at(6))) == {
        ("default", "done"): 1,
        ("default", "held"): 1,
        ("default", "grouped"): 1,
        ("mail", "leased"): 1,
    }
    assert [job.id for job in queue_at(ours, at(1_000)) if is_open(job)] == [
        job_id(2),
        job_id(3),
        job_id(4),
    ]


def test_what_concerns_a_window() -> None:
    done = steps(Life().enqueue().lease(1).complete(5).stream)
    held = steps(Life().enqueue(retries=0).lease(1).fail(5).stream)
    assert concerns(done, at(5))
    assert not concerns(done, at(6))
    assert concerns(held, at(6))


@pytest.mark.acceptance("E09")
def test_the_difference_of_two_moments() -> None:
    ours = busy_queue()
    changed = list(diff(ours, at(2), at(7)))
    assert [(each.after.id, each.moved) for each in changed] == [
        (job_id(1), ("leased", "done")),
        (job_id(2), ("leased", "held")),
        (job_id(3), ("absent", "retry-wait")),
    ]
    assert moves(changed) == {
        ("default", "leased", "done"): 1,
        ("default", "leased", "held"): 1,
        ("mail", "absent", "retry-wait"): 1,
    }
    assert list(diff(ours, at(100), at(200))) == []
    assert list(diff(ours, at(5), at(5))) == []


def test_a_choice_of_jobs_runs_and_moments() -> None:
    life = (
        Life()
        .open_group(item(1), queue="mail", unique_key="k", ordering_key="o")
        .lease(10, "w1#7")
        .expire(20)
    )
    spec, (run,) = life.now.spec, runs(life.stream)
    fits: dict[str, object] = {
        "queue": "mail",
        "name": "sync_page",
        "key": "k",
        "group": "a.md",
        "job": job_id(1),
    }
    assert Choice(**fits).of_job(spec)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    for name in fits:
        other: object = job_id(2) if name == "job" else "other"
        assert not Choice(**{name: other}).of_job(spec)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert Choice(key="o").of_job(spec)
    assert Choice(worker="w1").of_run(run)
    assert Choice(worker="w1#7").of_worker("w1#7")
    assert not Choice(worker="w2").of_run(run)
    assert not Choice(worker="w1").of_worker(None)
    assert Choice().of_worker(None)
    for since, until, inside in ((0, 9, False), (0, 10, True), (20, 30, True), (21, 30, False)):
        assert Choice(at(since), at(until)).of_run(run) == inside
    assert Choice(at(1), at(2)).within(at(2))
    assert not Choice(at(1), at(2)).within(at(3))
    assert not Choice().within(None)


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_public_status(state: State) -> None:
    assert STATUSES.keys() == set(State)
    waits = {State.QUEUED, State.GROUPED, State.RETRY_WAIT}
    assert (status(state) is Status.QUEUED) == (state in waits)
    assert (status(state) is Status.FAILED) == (state is State.FAILED)
    assert (status(state) is Status.SUCCEEDED) == (state is State.DONE)
