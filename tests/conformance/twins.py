"""Two stores that are told the same, step by step, and must answer and hold the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from attrs import evolve as replace

from leasebook.domain import change, collect
from leasebook.domain.commands import (
    CloseGroup,
    Command,
    Complete,
    ExpireLease,
    Fail,
    Release,
    Renew,
    TakeLease,
)
from leasebook.domain.events import ItemsJoined
from leasebook.domain.job import Group, Job, Policy
from leasebook.domain.log import Change
from leasebook.domain.states import State
from leasebook.domain.values import ExpiryCause, OnExhausted, Outcome, ReleaseReason
from leasebook.infra.ports import Claim, Store, Transaction
from leasebook.projections.row import from_row

from .ground import Ground, assert_consistent
from .making import birth, items, job_id, new_spec, undone

QUEUES = ("a", "b")
NAMES = ("work", "fold")
WORKERS = ("w0", "w1")
#: Far behind the real clock, so that what the steps count in seconds has always passed, and a delay
#: that has not.
START_AGO = timedelta(days=1)
LATER = timedelta(days=3)
COMPARE_EVERY = 4
SMALL_GROUP = Group(window=10, max_hold=30, max_size=4)


class Twins:
    """Drives both; a step is told by two small numbers, and by whether it is rolled back."""

    def __init__(self, grounds: Sequence[Ground], now: datetime) -> None:
        self._grounds = grounds
        self._stores: list[Store] = [ground.store() for ground in grounds]
        self._at = now - START_AGO
        self._numbers = 0
        self._changes: list[Change] = []

    def step(self, name: str, first: int, second: int, undo: bool) -> None:
        """Take one step on both, and compare the answers, and often all that is held."""
        self._at += timedelta(seconds=1 + 3 * second)
        self._numbers += 100
        getattr(self, f"_{name}")(first, second, undo)
        if self._numbers % (100 * COMPARE_EVERY) == 0:
            self._compare()

    def finish(self) -> None:
        """Both hold the same, and every invariant."""
        self._compare()
        for ground in self._grounds:
            assert_consistent(ground)

    def _both(self, act: Callable[[Transaction], Any], undo: bool) -> None:
        answers: list[Any] = []
        for store in self._stores:
            with undone(store.transaction()) if undo else store.transaction() as transaction:
                answers.append(act(transaction))
        assert answers[0] == answers[1]

    def _append(self, changes: Sequence[Change], undo: bool) -> None:
        """Append the same changes to both; they may be told again later."""
        self._changes += changes
        self._both(lambda transaction: append(transaction, changes), undo)

    def _jobs(self, *states: State) -> list[Job]:
        rows = self._grounds[0].rows().values()
        jobs = [from_row(*kept.row) for kept in rows]
        return sorted((job for job in jobs if job.state in states), key=lambda job: job.id)

    def _enqueue(self, first: int, second: int, undo: bool) -> None:
        policy = Policy(
            retries=second % 3,
            lease=(10.0, LATER.total_seconds())[first % 2],
            timeout=60.0,
            on_exhausted=(OnExhausted.HOLD, OnExhausted.DROP)[second % 2],
        )
        spec = new_spec(self._numbers, queue=QUEUES[first % 2], priority=second, policy=policy)
        if first == 9:
            spec = replace(spec, expires_at=self._at + timedelta(seconds=20))
        run_at = self._at + LATER if first == 8 else None
        more = [
            replace(spec, id=job_id(self._numbers + extra)) for extra in range(1, 1 + first % 3)
        ]
        self._append([birth(each, self._at, run_at) for each in (spec, *more)], undo)

    def _arrive(self, first: int, second: int, undo: bool) -> None:
        fields = {"queue": QUEUES[first % 2], "owner": (None, "o")[first % 5 == 4]}
        orders = items(range(1 + second), key=f"k{first % 3}", group=SMALL_GROUP, **fields)
        for ground in self._grounds:
            ground.put_items(orders, self._at)

    def _collect(self, first: int, second: int, undo: bool) -> None:
        def act(transaction: Transaction) -> Any:
            ids = iter(range(self._numbers, self._numbers + 100))
            made: list[Change] = []
            for found in transaction.collectable(1 + 4 * first):
                new_id: Callable[[], UUID] = lambda: job_id(next(ids))  # noqa: E731
                made += collect(found.open_group, found.arrivals, new_id, self._at)
            return append(transaction, made), [each.after for each in made]

        self._both(act, undo)

    def _claim(self, first: int, second: int, undo: bool) -> None:
        turn = QUEUES if first % 2 else QUEUES[::-1]
        since = self._at - timedelta(seconds=60) if first == 9 else None
        wanted = Claim(turn, NAMES[: 1 + second % 2], 1 + first, second % 3, since)

        def act(transaction: Transaction) -> Any:
            jobs = transaction.claim(wanted)
            worker = WORKERS[second % 2]
            leases = [change(job, TakeLease(max(self._at, job.due_at), worker)) for job in jobs]
            if first % 3:
                return jobs, append(transaction, leases)
            return jobs

        self._both(act, undo)

    def _end(self, first: int, second: int, undo: bool) -> None:
        jobs = self._jobs(State.LEASED)[first % 4 :][: 1 + second % 3]
        ends = [change(job, self._ending(job, first, second)) for job in jobs]
        # A renewal that would not grow is no event; it never reaches a store.
        self._append([each for each in ends if each.events], undo)

    def _ending(self, job: Job, first: int, second: int) -> Command:
        assert job.lease is not None
        at, token = self._at, job.lease.token
        delay = (0.0, 5.0, LATER.total_seconds())[first % 3]
        match second:
            case 0 | 1:
                return Complete(at, token)
            case 2:
                return Complete(at, token, '{"a":[1,"x"]}', Outcome.SKIPPED)
            case 3 | 4 | 5:
                return Fail(at, token, "it failed: \\ , { \" '", delay, retry=first != 7)
            case 6:
                return Release(at, token, ReleaseReason.SNOOZE, delay, "later")
            case 7:
                return ExpireLease(at, token, ExpiryCause.TIMED_OUT)
            case _:
                return Renew(at, token, job.due_at + timedelta(seconds=20))

    def _repeat(self, first: int, second: int, undo: bool) -> None:
        """What was told before, hit or miss or rolled back, is told again."""
        chosen = self._changes[-1 - 3 * first :][: 1 + second]
        self._append(list({each.after.id: each for each in chosen}.values()), undo)

    def _close(self, first: int, second: int, undo: bool) -> None:
        groups = self._jobs(State.GROUPED)[first % 3 :][:1]
        self._append([change(group, CloseGroup(self._at)) for group in groups], undo)

    def _expire(self, first: int, second: int, undo: bool) -> None:
        def act(transaction: Transaction) -> Any:
            jobs = transaction.overdue(100)
            return jobs, self._lose(transaction, jobs, ExpiryCause.LEASE_ENDED)

        self._both(act, undo)

    def _bury(self, first: int, second: int, undo: bool) -> None:
        def act(transaction: Transaction) -> Any:
            jobs = transaction.leased_by(WORKERS[first % 2], 100)
            return jobs, self._lose(transaction, jobs[:second], ExpiryCause.WORKER_LOST)

        self._both(act, undo)

    def _lose(
        self, transaction: Transaction, jobs: Sequence[Job], cause: ExpiryCause
    ) -> list[Change]:
        commands = [
            ExpireLease(max(self._at, job.due_at), job.lease.token, cause)
            for job in jobs
            if job.lease is not None
        ]
        pairs = zip(jobs, commands, strict=True)
        return append(transaction, [change(job, command) for job, command in pairs])

    def _compare(self) -> None:
        mine, theirs = (held(ground) for ground in self._grounds)
        differing = [key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key)]
        assert not differing, [(key, mine.get(key), theirs.get(key)) for key in differing[:1]]
        looks = [store.outlook(QUEUES, NAMES[:1], sample=1_000) for store in self._stores]
        looks += [store.outlook(QUEUES, NAMES) for store in self._stores]
        seen = [
            [(each.next_due, each.next_lease_end, each.inbox, each.strangers) for each in mine]
            for mine in (looks[::2], looks[1::2])
        ]
        assert seen[0] == seen[1]


def append(transaction: Transaction, changes: Sequence[Change]) -> list[Change]:
    """The changes that missed, in order of id."""
    return sorted(transaction.append(changes), key=lambda each: each.after.id)


def held(ground: Ground) -> dict[object, object]:
    """All that a database holds, with its running numbers counted from one and without gaps.

    The number of an event is left out: it is in order within a stream, and from one birth to the
    next, and promises nothing else.
    """
    log, rows = ground.log(), ground.rows()
    joined = [each.event for each in log if isinstance(each.event, ItemsJoined)]
    item_ids = ranks({number for event in joined for number in event.item_ids})
    xids = ranks({each.xid for each in log})
    births = ranks({each.event_id for each in log if each.version == 1})
    assert all(
        one.event_id < two.event_id for one, two in pairwise(log) if one.job_id == two.job_id
    )
    things: dict[object, object] = {"inbox": ground.inbox()}
    for each in log:
        event = each.event
        if isinstance(event, ItemsJoined):
            event = replace(event, item_ids=tuple(item_ids[number] for number in event.item_ids))
        things["event", each.job_id, each.version] = xids[each.xid], event
    for known, (seq, row, marked) in rows.items():
        things["row", known] = births[seq], row, marked
    return things


def ranks(numbers: set[int]) -> dict[int, int]:
    """Each number's place among all."""
    return {number: place for place, number in enumerate(sorted(numbers), 1)}
