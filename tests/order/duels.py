"""Pairs of sessions that meet at one ordering key, and what stands there before they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import psycopg
from attrs import frozen

from leasebook.domain import Job, JobSpec, OnConflict, OnExhausted, OnHold, Policy
from leasebook.domain.job import Group
from leasebook.infra.app.ids import new_id
from leasebook.infra.caller_ports import Order
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.holders import EPOCH
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Answer, Broke, Report, Succeeded
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.tick import Ask, Ticker
from tests.conformance import making

NAMES = ("fold", "work")
SERIAL = Group(window=0.0, max_hold=0.0, max_size=1, serial=True)
SLOTS = 10

Act = Callable[[str], Sequence[Job]]


@frozen
class Meeting:
    """One key, the workers' names and the hand that prepares; told apart by ``number``."""

    dsn: str
    number: int

    @property
    def key(self) -> str:
        """The ordering key of this meeting."""
        return f"key {self.number}"

    def spec(self, **fields: Any) -> JobSpec:
        """A job of the key."""
        given: dict[str, Any] = {"ordering_key": self.key, "policy": Policy(retries=0), **fields}
        return JobSpec(new_id(), "work", "1", EPOCH, **given)

    def item(self) -> Order:
        """An item of a serial group of the key."""
        key = self.key
        fields: dict[str, Any] = {"group_key": key, "group": SERIAL, "ordering_key": key}
        return Order(JobSpec(new_id(), "fold", "1", EPOCH, **fields))

    def accept(self, *orders: Order) -> list[UUID | None]:
        """Each in a transaction of its own, so that none is born behind another."""
        return [_accepted(self.dsn, each) for each in orders]

    def worker(self, act: Callable[[Ticker], Sequence[Job]], name: str) -> Act:
        """A client that is the worker ``name``."""

        def client(dsn: str) -> Sequence[Job]:
            with closing(PostgresStore(dsn)) as store:
                return act(ticker(store, name))

        return client

    def tick(self, name: str, *reports: Report, slots: int = SLOTS, collect: bool = False) -> Act:
        """A worker's tick; the jobs that it leased."""
        ask = Ask(reports, (), slots, collect, full_sweep=True)
        return self.worker(lambda one: one.tick(ask).leased, name)


def ticker(store: PostgresStore, name: str) -> Ticker:
    """The ticks of a worker on the list."""
    return Ticker(store, name, ("default",), NAMES, WorkerSettings(), new_id)


def _accepted(dsn: str, order: Order) -> UUID | None:
    with psycopg.connect(dsn) as caller:
        receipts = accept(Schema(), caller, [order])
    assert isinstance(receipts, tuple)
    return receipts[0].id


Duel = Callable[[Meeting], tuple[Act, Act]]


def _leased(meeting: Meeting) -> Job:
    [job] = meeting.tick("A", slots=1)(meeting.dsn)
    return job


def _an_end(answer: Answer, slots: int, **fields: Any) -> Duel:
    def duel(meeting: Meeting) -> tuple[Act, Act]:
        meeting.accept(Order(meeting.spec(**fields)))
        report = Report(_leased(meeting), answer)
        meeting.accept(Order(meeting.spec()))
        return meeting.tick("A", report, slots=slots), meeting.tick("B")

    return duel


def two_claim(meeting: Meeting) -> tuple[Act, Act]:
    """Two workers claim the two jobs of the key."""
    meeting.accept(Order(meeting.spec()), Order(meeting.spec()))
    return meeting.tick("A", slots=1), meeting.tick("B")


def _produces(end: str) -> Duel:
    def duel(meeting: Meeting) -> tuple[Act, Act]:
        def produce(dsn: str) -> Sequence[Job]:
            with psycopg.connect(dsn) as caller:
                caller.execute("savepoint mine")
                accept(Schema(), caller, [Order(meeting.spec())])
                caller.execute(end.encode())
            return ()

        def claim(one: Ticker) -> Sequence[Job]:
            # It is accepted later than the other's, and committed before it.
            meeting.accept(Order(meeting.spec()))
            return one.tick(Ask((), (), SLOTS, full_sweep=True)).leased

        return produce, meeting.worker(claim, "B")

    return duel


def _waits_until_quiet(meeting: Meeting) -> tuple[Act, Act]:
    producer, _ = _produces("release mine")(meeting)

    def claim(one: Ticker) -> Sequence[Job]:
        meeting.accept(Order(meeting.spec()))
        newest = one.store.settle_key(meeting.key, 5.0)
        one.keys.waited(meeting.key, newest, making.now(one.store))
        return one.tick(Ask((), (), SLOTS, full_sweep=True)).leased

    return producer, meeting.worker(claim, "B")


def _a_parent_ends(answer: Answer, **fields: Any) -> Duel:
    def duel(meeting: Meeting) -> tuple[Act, Act]:
        [parent] = meeting.accept(Order(meeting.spec(**fields)))
        report = Report(_leased(meeting), answer)
        meeting.accept(Order(meeting.spec(ordering_key=None, after=parent)))
        return meeting.tick("A", report, slots=0), meeting.tick("B")

    return duel


def collects(meeting: Meeting) -> tuple[Act, Act]:
    """One worker collects items of a serial type, another leases what there is of the key."""
    meeting.accept(meeting.item())
    meeting.tick("A", slots=0, collect=True)(meeting.dsn)
    meeting.accept(meeting.item(), Order(meeting.spec()), meeting.item())
    return meeting.tick("A", slots=0, collect=True), meeting.tick("B", collect=True)


def moves(meeting: Meeting) -> tuple[Act, Act]:
    """A blocked job is moved to another time while its blocker ends."""
    meeting.accept(Order(meeting.spec()))
    report = Report(_leased(meeting), Succeeded())
    unique = {"unique_key": f"unique {meeting.number}"}
    meeting.accept(Order(meeting.spec(**unique)))
    meeting.tick("B")(meeting.dsn)

    def move(dsn: str) -> Sequence[Job]:
        with psycopg.connect(dsn) as caller:
            accept(Schema(), caller, [Order(meeting.spec(**unique), None, 0.0, OnConflict.KEEP)])
            moved = Order(meeting.spec(**unique), None, 0.001, OnConflict.REPLACE)
            accept(Schema(), caller, [moved])
        return ()

    return move, meeting.tick("A", report, slots=0)


def expires(meeting: Meeting) -> tuple[Act, Act]:
    """The lease of a job is ended from outside while the next one is claimed."""
    with closing(PostgresStore(meeting.dsn)) as store:
        [job] = making.enqueue(store, meeting.spec(on_hold=OnHold.SKIP))
        making.lease(store, job, "A")
    meeting.accept(Order(meeting.spec()))

    def expire(one: Ticker) -> Sequence[Job]:
        sweep(one.store, 10)
        return ()

    return meeting.worker(expire, "A"), meeting.tick("B")


DROP = Policy(retries=0, on_exhausted=OnExhausted.DROP)
FAILS = Broke("boom", 0.0)

DUELS: dict[str, Duel] = {
    "a job ends, the next is claimed": _an_end(Succeeded(), 0),
    "a job ends and leases, the next is claimed": _an_end(Succeeded(), SLOTS),
    "a job is held and skipped, the next is claimed": _an_end(FAILS, 0, on_hold=OnHold.SKIP),
    "a lease ends, the next is claimed": expires,
    "two claim": two_claim,
    "a producer commits, a later job is claimed": _produces("release mine"),
    "a producer rolls back, a later job is claimed": _produces("rollback"),
    "a producer rolls a savepoint back": _produces("rollback to mine"),
    "a producer is waited for": _waits_until_quiet,
    "a parent is done, its dependent is claimed": _a_parent_ends(Succeeded()),
    "a parent fails, its dependent is claimed": _a_parent_ends(FAILS, policy=DROP),
    "a parent is held, its dependent is claimed": _a_parent_ends(FAILS),
    "items are collected, a group is claimed": collects,
    "a blocked job is moved, its blocker ends": moves,
}
