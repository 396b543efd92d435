"""Jobs that wait are moved; a job whose unique key is wanted stands for another, or refuses."""

from __future__ import annotations

from typing import Any

import pytest

from leasebook.domain import (
    IdempotencyConflict,
    IllegalTransition,
    InvalidValue,
    OnConflict,
    State,
    UniqueKeyTaken,
    meet,
)
from leasebook.domain.commands import Enqueue
from leasebook.domain.events import Rescheduled
from leasebook.domain.job import Job
from leasebook.domain.log import Change
from tests.support.lives import Life, at, in_state, job_id, spec


def wanted(due: float | None = 500, **given: Any) -> Enqueue:
    """An enqueue at second 100 that wants the key of another job."""
    run_at = None if due is None else at(due)
    return Enqueue(at(100), spec(2, unique_key="k", **given), run_at)


def holder() -> Job:
    return Life().enqueue(run_at=300, unique_key="k").now


def replace(job: Job, due: float | None = 500, *, same: bool = True) -> Change | None:
    return meet(job, wanted(due), OnConflict.REPLACE, same)


@pytest.mark.parametrize("due", [200, 400])
def test_a_waiting_job_moves_to_an_earlier_or_later_time(due: float) -> None:
    life = Life().enqueue(run_at=300)
    life.reschedule(100, due)
    assert (life.now.state, life.now.due_at, life.now.version) == (State.QUEUED, at(due), 2)
    assert life.lease(due).now.starts == 1


def test_a_retry_moves_and_stays_a_retry() -> None:
    life = Life().enqueue().lease(1).fail(2, delay=60).reschedule(10, 20)
    assert (life.now.state, life.now.due_at, life.now.attempts) == (State.RETRY_WAIT, at(20), 1)


def test_a_time_that_has_passed_means_at_once_and_no_time_runs_backwards() -> None:
    life = Life().enqueue(run_at=300).reschedule(100, 50)
    assert life.now.due_at == at(100)
    assert life.stream[-1].event == Rescheduled(at(100), at(100))


def test_nothing_happens_when_nothing_would_change() -> None:
    due = Life().enqueue()
    assert len(due.reschedule(100, 50).stream) == 1, "a due job keeps its place"
    later = Life().enqueue(run_at=300)
    assert len(later.reschedule(100, 300).stream) == 1


def test_a_job_is_not_moved_to_when_it_has_expired() -> None:
    life = Life().enqueue(run_at=300, expires_at=at(400))
    with pytest.raises(InvalidValue, match="expires at"):
        life.reschedule(100, 400)
    assert life.reschedule(100, 399).now.due_at == at(399)


@pytest.mark.acceptance("P09")
@pytest.mark.parametrize("state", [each for each in State if each is not State.DONE])
def test_reject_and_keep_whatever_the_holder_does(state: State) -> None:
    job = in_state(state).now
    with pytest.raises(UniqueKeyTaken) as taken:
        meet(job, wanted(), OnConflict.REJECT, False)
    error = taken.value
    assert (error.job_id, error.state, error.held) == (job.id, state, state is State.FAILED)
    assert error.code == "unique_key_taken"
    assert str(job.id) in str(error)
    assert ("until it is discarded" in str(error)) == error.held
    assert meet(job, wanted(), OnConflict.KEEP, False) is None


@pytest.mark.acceptance("P09")
def test_replace_moves_the_pending_job_and_changes_nothing_else() -> None:
    job = holder()
    moved = replace(job)
    assert moved is not None
    assert moved.events == (Rescheduled(at(100), at(500)),)
    assert (moved.after.id, moved.after.spec) == (job_id(1), job.spec)
    at_once = replace(job, None)
    assert at_once is not None
    assert at_once.after.due_at == at(100)
    assert replace(job, 300) is None


@pytest.mark.parametrize("state", [State.GROUPED, State.LEASED, State.FAILED])
def test_replace_moves_only_what_waits_alone(state: State) -> None:
    with pytest.raises(UniqueKeyTaken):
        replace(in_state(state).now)


def test_replace_never_drops_arguments() -> None:
    with pytest.raises(UniqueKeyTaken, match="It has other arguments"):
        replace(holder(), same=False)


@pytest.mark.parametrize("on_conflict", list(OnConflict))
def test_a_job_of_another_name_stands_for_nobody(on_conflict: OnConflict) -> None:
    with pytest.raises(UniqueKeyTaken, match="another kind of job"):
        meet(holder(), wanted(name="other"), on_conflict, True)


def test_errors_are_short_and_say_what_to_do() -> None:
    taken = UniqueKeyTaken("q" * 128, "k" * 512, job_id(1), "leased", False, "wait")
    other = IdempotencyConflict("k" * 512, job_id(1))
    assert len(str(taken)) < 300
    assert str(taken).endswith("and is leased. Wait.")
    assert len(str(other)) < 300
    assert other.code == "idempotency_conflict"


def test_a_group_is_not_moved() -> None:
    with pytest.raises(IllegalTransition, match="its window says when"):
        in_state(State.GROUPED).reschedule(10, 20)
