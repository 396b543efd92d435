"""The row of a job is the job: nothing is lost on the way to the claim table and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import Job, OnExhausted, Outcome, ReleaseReason, State
from leasebook.domain.commands import (
    CloseGroup,
    Command,
    Complete,
    Enqueue,
    ExpireLease,
    Fail,
    JoinItems,
    OpenGroup,
    Release,
    Renew,
    Reschedule,
    TakeLease,
)
from leasebook.domain.decide import change
from leasebook.domain.errors import LeasebookError
from leasebook.domain.job import Group, JobSpec, Policy
from leasebook.domain.values import ExpiryCause
from leasebook.projections.row import from_row, to_row
from tests.support.lives import Life, at, in_state, item, job_id, under

words = st.none() | st.text(min_size=1, max_size=5)
seconds = st.floats(0.001, 1e6)


@st.composite
def specs(draw: st.DrawFn) -> JobSpec:
    group = draw(st.none() | st.builds(Group, seconds, seconds, st.integers(2, 50)))
    policy = st.builds(Policy, st.integers(0, 2), seconds, seconds, st.sampled_from(OnExhausted))
    return JobSpec(
        job_id(draw(st.integers(0, 99))),
        "sync_page",
        "null" if group else draw(st.sampled_from(['{"a":1}', "[]"])),
        at(0),
        draw(st.sampled_from(["default", "Mixed-Case"])),
        draw(st.integers(0, 9)),
        draw(policy),
        draw(words),
        draw(words),
        draw(words),
        draw(st.none() | st.just(at(2e6))),
        "key" if group else None,
        group,
        unique_key=None if group else draw(words),
    )


@st.composite
def commands(draw: st.DrawFn) -> list[Command]:
    """A life in a random order; what the domain refuses is skipped."""
    spec = draw(specs())
    first = Enqueue(at(0), spec) if spec.group is None else OpenGroup(at(0), spec, (item(1),))
    return [first, *draw(st.lists(st.sampled_from(NEXT), max_size=12))]


def _next() -> list[Command]:
    made: list[Command] = []
    for n in range(1, 5):
        now = at(n * 1e6)
        made += [
            JoinItems(now, (item(n + 1),)),
            CloseGroup(now),
            Reschedule(now, at(n * 1e6 + 700)),
            TakeLease(now, "w1"),
            Renew(now, 0, at(n * 1e6 + 500)),
            Fail(now, 0, "boom", 60),
            Release(now, 0, ReleaseReason.SNOOZE, 60),
            ExpireLease(now, 0, ExpiryCause.WORKER_LOST),
            Complete(now, 0, "1"),
        ]
    return made


NEXT = _next()


@given(commands())
def test_a_row_gives_back_its_job_in_every_reachable_state(life: list[Command]) -> None:
    job: Job | None = None
    for command in life:
        if job is not None and job.lease is not None:
            command = under(command, job.lease.token)
        try:
            job = change(job, command).after
        except LeasebookError:
            continue
        row = to_row(job)
        finished = job.state in (State.DONE, State.FAILED) and not job.held
        assert (row is None) == finished
        assert row is None or from_row(*row) == job


@pytest.mark.parametrize("state", list(State))
def test_who_has_a_row(state: State) -> None:
    row = to_row(in_state(state).now)
    assert (row is None) == (state is State.DONE)
    assert row is None or from_row(*row).state is state


def test_a_dropped_job_has_no_row_and_a_held_one_keeps_its_outcome() -> None:
    dropped = Life().enqueue(retries=0, on_exhausted=OnExhausted.DROP).lease(1).fail(2)
    assert to_row(dropped.now) is None
    row = to_row(in_state(State.FAILED).now)
    assert row is not None
    assert (row[1].held, row[1].outcome) == (True, Outcome.EXHAUSTED)


def test_an_interrupted_job_is_marked_as_a_suspect() -> None:
    row = to_row(Life().enqueue().lease(1).expire(2).now)
    assert row is not None
    assert row[1].suspect
