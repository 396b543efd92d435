"""Lease expiry against an independent model, in any order of events that Hypothesis thinks of."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine

from leasebook.domain import ExpiryCause, LeasebookError, ReleaseReason, fold
from leasebook.domain.commands import (
    Command,
    Complete,
    ExpireLease,
    Fail,
    Release,
    Renew,
    TakeLease,
)
from leasebook.projections.check import check
from leasebook.projections.row import from_row, to_row
from tests.support.lives import Life, at
from tests.support.machines import STEPS_MAX, among, begin, invariant, rule, whole

TERM, LIMIT = 60, 150


class Model:
    """What a lease is, told in seconds and without events: a due time, a holder, a budget."""

    def __init__(self, retries: int) -> None:
        self.left = retries + 1
        self.due = 0.0
        self.holder: int | None = None
        self.began = 0.0
        self.ended = False
        self.starts = 0

    def can_lease(self, now: float) -> bool:
        return not self.ended and self.holder is None and now >= self.due

    def lease(self, now: float, token: int) -> None:
        self.holder, self.began, self.due = token, now, now + TERM
        self.starts += 1

    def can_expire(self, now: float, token: int, cause: ExpiryCause) -> bool:
        by_clock = cause is ExpiryCause.LEASE_ENDED
        return self.holder == token and not (by_clock and now < self.due)

    def renew(self, until: float) -> None:
        self.due = max(self.due, min(until, self.began + LIMIT))

    def lose_attempt(self, due: float) -> None:
        self.left -= 1
        self.holder, self.due, self.ended = None, due, self.left == 0

    def give_back(self, due: float) -> None:
        self.holder, self.due = None, due

    def finish(self) -> None:
        self.holder, self.ended = None, True


class Leases(RuleBasedStateMachine):
    """One job, many workers, some of them frozen: they answer with tokens of long ago."""

    @begin(retries=whole(0, 3))
    def birth(self, retries: int) -> None:
        self.now = 0.0
        self.tokens = [1]
        self.life = Life().enqueue(retries=retries, lease=TERM, timeout=LIMIT)
        self.model = Model(retries)

    def token(self, age: int) -> int:
        return self.tokens[max(0, len(self.tokens) - 1 - age)]

    def ask(self, allowed: bool, command: Command) -> None:
        """Do it; it must succeed exactly when the model allows it, and else change nothing."""
        before = self.life.job
        try:
            self.life.do(command)
        except LeasebookError:
            assert not allowed
            assert self.life.job is before
        else:
            assert allowed

    @rule(seconds=among([0.5, 29, 31, 60, 61, 151]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def lease(self) -> None:
        allowed = self.model.can_lease(self.now)
        self.ask(allowed, TakeLease(at(self.now), "w"))
        if allowed:
            self.tokens.append(self.life.now.version)
            self.model.lease(self.now, self.life.now.version)

    @rule(age=whole(0, 2), cause=among(tuple(ExpiryCause)))
    def expire(self, age: int, cause: ExpiryCause) -> None:
        token = self.token(age)
        allowed = self.model.can_expire(self.now, token, cause)
        self.ask(allowed, ExpireLease(at(self.now), token, cause))
        if allowed:
            self.model.lose_attempt(self.now)

    @rule(age=whole(0, 2), ahead=among([10, 60, 500]))
    def renew(self, age: int, ahead: float) -> None:
        allowed = self.model.holder == self.token(age)
        self.ask(allowed, Renew(at(self.now), self.token(age), at(self.now + ahead)))
        if allowed:
            self.model.renew(self.now + ahead)

    @rule(age=whole(0, 2), delay=among([0, 45]))
    def fail(self, age: int, delay: float) -> None:
        allowed = self.model.holder == self.token(age)
        self.ask(allowed, Fail(at(self.now), self.token(age), "boom", delay))
        if allowed:
            self.model.lose_attempt(self.now + delay)

    @rule(age=whole(0, 2), delay=among([0, 45]))
    def release(self, age: int, delay: float) -> None:
        allowed = self.model.holder == self.token(age)
        reason = ReleaseReason.SNOOZE
        self.ask(allowed, Release(at(self.now), self.token(age), reason, delay))
        if allowed:
            self.model.give_back(self.now + delay)

    @rule(age=whole(0, 2))
    def complete(self, age: int) -> None:
        if self.now <= 30:
            return  # Most lives would end before they become interesting.
        allowed = self.model.holder == self.token(age)
        self.ask(allowed, Complete(at(self.now), self.token(age)))
        if allowed:
            self.model.finish()

    @invariant()
    def they_agree(self) -> None:
        job, model = self.life.now, self.model
        assert (job.lease.token if job.lease else None) == model.holder
        assert (job.outcome is not None) == model.ended
        assert (job.starts, job.budget_left) == (model.starts, model.left)
        assert model.ended or job.due_at == at(model.due)

    @invariant()
    def the_row_says_the_same(self) -> None:
        job = self.life.now
        row = to_row(job)
        assert (row is None) == (job.outcome is not None and not job.held)
        assert row is None or from_row(*row) == job

    def teardown(self) -> None:
        """The log is append-only: what was ever wrong with it still is."""
        if hasattr(self, "life"):
            assert fold(recorded.event for recorded in self.life.stream) == self.life.now
            assert list(check(self.life.stream)) == []


TestLeases = pytest.mark.acceptance("E05")(Leases.TestCase)
TestLeases.settings = settings(max_examples=150, stateful_step_count=STEPS_MAX, deadline=None)
