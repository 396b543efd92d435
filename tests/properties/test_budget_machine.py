"""Budget and delays against an independent model: every retry policy, every way to end a run."""

from __future__ import annotations

from math import isclose
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine

from leasebook.domain import (
    ExpiryCause,
    LeasebookError,
    OnExhausted,
    Outcome,
    ReleaseReason,
    Retry,
    State,
    fold,
)
from leasebook.domain.commands import Command, Complete, ExpireLease, Fail, Release, TakeLease
from leasebook.projections.check import check
from leasebook.projections.row import from_row, to_row
from tests.support.lives import START, Life, at
from tests.support.machines import (
    STEPS_MAX,
    among,
    begin,
    built,
    either,
    invariant,
    rule,
    several,
    whole,
)

EXAMPLES = 150

FIXED = built(Retry, whole(0, 3), delay=among([0, 1, 60]))
LISTED = built(Retry, whole(0, 4), delays=several(among([0.5, 10, 90]), 1, 5))
GROWING = built(
    Retry,
    whole(0, 5),
    delay=among([1, 2]),
    factor=among([1, 2, 10]),
    cap=among([5, 50]),
    jitter=among([0, 0.5]),
)


class Model:
    """A budget in numbers: runs that may still be counted, and when the next may begin."""

    def __init__(self, retry: Retry, hold: bool) -> None:
        self.retry, self.hold = retry, hold
        self.left = retry.retries + 1
        self.counted = 0
        self.due = 0.0
        self.running = False
        self.outcome: Outcome | None = None

    @property
    def spent(self) -> bool:
        return self.left == 0

    def wait(self) -> tuple[float, float]:
        """The shortest and the longest wait after the run that is counted now."""
        retry, times = self.retry, self.counted
        if retry.delays:
            plain = (*retry.delays, *[retry.delays[-1]] * times)[times]
        else:
            plain = retry.delay
            for _ in range(times):
                plain = min(retry.cap, plain * retry.factor)
        plain = min(retry.cap, plain)
        return plain * (1 - retry.jitter), min(retry.cap, plain * (1 + retry.jitter))

    def count(self, due: float, last: Outcome) -> None:
        self.left -= 1
        self.counted += 1
        self.give_back(due)
        if self.spent:
            self.outcome = last

    def give_back(self, due: float) -> None:
        self.running, self.due = False, due

    def finish(self, outcome: Outcome) -> None:
        self.running, self.outcome = False, outcome


class Budgets(RuleBasedStateMachine):
    """One job that runs and fails, or is given back, or interrupted, until it ends."""

    @begin(retry=either(FIXED, LISTED, GROWING), hold=among([False, True]))
    def birth(self, retry: Retry, hold: bool) -> None:
        self.now = 0.0
        on_exhausted = OnExhausted.HOLD if hold else OnExhausted.DROP
        self.life = Life().enqueue(retries=retry.retries, on_exhausted=on_exhausted)
        self.model = Model(retry, hold)

    def ask(self, allowed: bool, command: Command) -> None:
        """Do it; it must succeed exactly when the model allows it."""
        try:
            self.life.do(command)
        except LeasebookError:
            assert not allowed
        else:
            assert allowed

    def given(self) -> tuple[Any, int]:
        return at(self.now), self.life.token

    @rule(seconds=among([0.4, 5, 61]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def wait_until_due(self) -> None:
        if self.life.now.state is not State.LEASED:
            self.now = max(self.now, (self.life.now.due_at - START).total_seconds())

    @rule()
    def start(self) -> None:
        model = self.model
        # Sums of seconds are compared as times, which are whole microseconds.
        due = at(self.now) >= at(model.due)
        allowed = model.outcome is None and not model.running and due
        self.ask(allowed, TakeLease(at(self.now), "w"))
        model.running = model.running or allowed

    @rule(again=among([False, True]))
    def fail(self, again: bool) -> None:
        """The worker that ends the run brings the delay of its policy."""
        model = self.model
        seconds = model.retry.seconds(self.life.now.id, self.life.now.attempts + 1)
        self.ask(model.running, Fail(*self.given(), "boom", seconds, again))
        if not model.running:
            return
        shortest, longest = model.wait()
        assert shortest <= seconds <= longest or isclose(seconds, longest)
        model.count(self.now + seconds, Outcome.EXHAUSTED)
        if not again:
            model.finish(Outcome.REJECTED)

    @rule(reason=among(tuple(ReleaseReason)), seconds=among([0, 7]))
    def release(self, reason: ReleaseReason, seconds: float) -> None:
        self.ask(self.model.running, Release(*self.given(), reason, seconds))
        if self.model.running:
            self.model.give_back(self.now + seconds)

    @rule(cause=among([ExpiryCause.WORKER_LOST, ExpiryCause.TIMED_OUT]))
    def interrupt(self, cause: ExpiryCause) -> None:
        self.ask(self.model.running, ExpireLease(*self.given(), cause))
        if self.model.running:
            self.model.count(self.now, Outcome.LOST)

    @rule()
    def complete(self) -> None:
        self.ask(self.model.running, Complete(*self.given()))
        if self.model.running:
            self.model.finish(Outcome.DONE)

    @invariant()
    def they_agree(self) -> None:
        job, model = self.life.now, self.model
        assert (job.attempts, job.budget_left) == (model.counted, model.left)
        assert (job.lease is not None, job.outcome) == (model.running, model.outcome)
        assert job.held == (model.hold and model.outcome not in (None, Outcome.DONE))
        if model.outcome is None and not model.running:
            assert job.due_at == at(model.due)

    @invariant()
    def the_row_says_the_same(self) -> None:
        row = to_row(self.life.now)
        assert row is None or from_row(*row) == self.life.now

    def teardown(self) -> None:
        if hasattr(self, "life"):
            assert fold(each.event for each in self.life.stream) == self.life.now
            assert list(check(self.life.stream)) == []


TestBudgets = pytest.mark.acceptance("E05")(Budgets.TestCase)
TestBudgets.settings = settings(max_examples=EXAMPLES, stateful_step_count=STEPS_MAX, deadline=None)
