"""Grouping limits against an independent model, whenever items arrive and are collected."""

from __future__ import annotations

from itertools import count
from uuid import UUID

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine

from leasebook.domain import Arrival, Group, Job, Recorded, State, change, collect
from leasebook.domain.commands import Item, TakeLease
from leasebook.domain.events import Event
from leasebook.projections.check import check
from tests.support.lives import at, group_spec, job_id
from tests.support.machines import STEPS_MAX, among, begin, invariant, rule, several

WINDOW, HOLD, SIZE = 10.0, 25.0, 3


class Bucket:
    """A group in seconds.  It takes items while open; of those that find it due none moves it."""

    def __init__(self, owner: str, first: float, now: float) -> None:
        self.owner = owner
        self.latest = first + HOLD
        self.pushed_to = first + WINDOW
        self.born = now
        self.items: list[int] = []
        self.open = True

    @property
    def due(self) -> float:
        return max(min(self.pushed_to, self.latest), self.born)

    def close(self, now: float) -> None:
        self.open = False
        self.pushed_to = min(self.due, now)


class Model:
    """All groups of one key, the newest last."""

    def __init__(self) -> None:
        self.buckets: list[Bucket] = []

    def collect(self, items: list[tuple[int, float, str]], now: float) -> None:
        frozen = [bucket for bucket in self.buckets if bucket.due <= now]
        for number, arrived, owner in items:
            bucket = self.buckets[-1] if self.buckets else None
            if bucket is None or not bucket.open or bucket.owner != owner:
                if bucket is not None and bucket.open:
                    bucket.close(now)
                bucket = Bucket(owner, arrived, now)
                self.buckets.append(bucket)
            bucket.items.append(number)
            if bucket not in frozen and arrived < min(bucket.pushed_to, bucket.latest):
                bucket.pushed_to = max(bucket.pushed_to, arrived + WINDOW)
            if len(bucket.items) == SIZE:
                bucket.close(now)


class Groups(RuleBasedStateMachine):
    """One key: items arrive, somebody collects sooner or later, due groups are leased."""

    @begin()
    def birth(self) -> None:
        self.now = 0.0
        self.numbers, self.ids, self.event_ids = count(1), count(1), count(1)
        self.inbox: list[tuple[int, float, str]] = []
        self.model = Model()
        self.jobs: dict[UUID, Job] = {}
        self.log: dict[UUID, list[Recorded]] = {}

    @rule(seconds=among([0.5, 4, 9, 10, 26]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(owners=several(among(["ann", "ann", "ann", "bob"]), 1, 8))
    def arrive(self, owners: list[str]) -> None:
        self.inbox += [(next(self.numbers), self.now, owner) for owner in owners]

    @rule(most=among([1, 4, 1_000]))
    def gather(self, most: int) -> None:
        taken, self.inbox = self.inbox[:most], self.inbox[most:]
        group = Group(WINDOW, HOLD, SIZE)
        arrivals = [
            Arrival(Item(number, at(when), str(number)), group_spec(1, group, owner=owner))
            for number, when, owner in taken
        ]
        opened = [job for job in self.jobs.values() if job.state is State.GROUPED]
        newest = opened[-1] if opened else None
        for made in collect(newest, arrivals, lambda: job_id(next(self.ids)), at(self.now)):
            self.append(made.after, made.events)
        self.model.collect(taken, self.now)

    @rule()
    def lease(self) -> None:
        """Lease the newest group if it is due; then it is frozen."""
        if not self.jobs:
            return
        newest, bucket = list(self.jobs.values())[-1], self.model.buckets[-1]
        if newest.state in (State.GROUPED, State.QUEUED) and bucket.due <= self.now:
            made = change(newest, TakeLease(at(self.now), "w"))
            self.append(made.after, made.events)
            bucket.open = False

    def append(self, after: Job, events: tuple[Event, ...]) -> None:
        stream = self.log.setdefault(after.id, [])
        for event in events:
            version = len(stream) + 1
            stream.append(Recorded(after.id, version, next(self.event_ids), 7, event))
        self.jobs[after.id] = after

    @invariant()
    def they_agree(self) -> None:
        jobs, buckets = list(self.jobs.values()), self.model.buckets
        assert [[int(each) for each in job.items] for job in jobs] == [b.items for b in buckets]
        for job, bucket in zip(jobs, buckets, strict=True):
            assert (job.state is State.GROUPED) == bucket.open
            assert job.state is State.LEASED or job.due_at == at(bucket.due)
            assert job.spec.owner == bucket.owner

    @invariant()
    def the_limits_hold(self) -> None:
        assert sum(job.state is State.GROUPED for job in self.jobs.values()) <= 1
        members = [number for bucket in self.model.buckets for number in bucket.items]
        waiting = [number for number, _, _ in self.inbox]
        assert members + waiting == list(range(1, len(members) + len(waiting) + 1))

    def teardown(self) -> None:
        """The log is append-only: what was ever wrong with it still is."""
        if hasattr(self, "log"):
            assert list(check(each for stream in self.log.values() for each in stream)) == []


TestGroups = pytest.mark.acceptance("E05")(Groups.TestCase)
TestGroups.settings = settings(max_examples=150, stateful_step_count=STEPS_MAX, deadline=None)
