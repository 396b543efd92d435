"""Producers and workers on PostgreSQL that get into each other's way on a few ordering keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from threading import Event
from typing import Any
from uuid import UUID

import psycopg
from attrs import define, field

from leasebook.domain import (
    Job,
    JobSpec,
    OnConflict,
    OnExhausted,
    OnHold,
    Policy,
    ReleaseReason,
    UniqueKeyTaken,
)
from leasebook.domain.job import Group
from leasebook.infra.app.ids import new_id
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.holders import EPOCH
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Answer, Broke, GaveBack, Report, Succeeded
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.tick import Ask, Ticker
from tests.conformance.making import worker

PAUSE_SECONDS_MAX = 0.02
#: Between two transactions of a producer: a key's jobs end one at a time.
REST_SECONDS_MAX = 0.2
KEYS = [f"key {number}" for number in range(6)]
#: A held job stops one of these for good, so there are many.
FRAGILE = [f"fragile {number}" for number in range(40)]
SERIAL = Group(window=0.01, max_hold=0.05, max_size=2, serial=True)
SLOTS = 10


@define
class Producer:
    """Transactions of several enqueues, with savepoints, of which some are rolled back."""

    dsn: str
    number: int
    stop: Event
    made: Counter[str] = field(factory=Counter[str])
    _known: list[UUID] = field(factory=list[UUID])
    _moves: bool = False

    def run(self) -> Counter[str]:
        """Go on until told to stop; how often each thing was done."""
        draw = random.Random(self.number)
        with psycopg.connect(self.dsn) as caller:
            while not self.stop.is_set():
                born = self._transaction(caller, draw)
                if draw.random() < 0.2:
                    caller.rollback()
                    self.made["rolled back"] += 1
                else:
                    caller.commit()
                    self._known = [*self._known, *born][-20:]
                    self.made["committed"] += 1
                self.stop.wait(draw.random() * REST_SECONDS_MAX)
        return self.made

    def _transaction(self, caller: psycopg.Connection, draw: random.Random) -> list[UUID]:
        born: list[UUID] = []
        self._moves = False
        for _ in range(draw.randint(1, 3)):
            undone = draw.random() < 0.15
            if undone:
                caller.execute("savepoint mine")
            got = self._enqueue(caller, draw, born)
            if undone:
                caller.execute("rollback to savepoint mine")
                self.made["savepoint"] += 1
            else:
                born += got
            if draw.random() < 0.3:
                self._pause(draw)
        return born

    def _enqueue(
        self, caller: psycopg.Connection, draw: random.Random, born: list[UUID]
    ) -> list[UUID]:
        parents = [*self._known, *born]
        orders = [self._order(draw, parents) for _ in range(draw.randint(1, 3))]
        try:
            receipts = accept(Schema(), caller, orders)
        except UniqueKeyTaken:
            self.made["taken"] += 1
            return []
        assert isinstance(receipts, tuple)
        self.made["moved or kept"] += sum(not each.created for each in receipts)
        return [each.id for each in receipts if each.id is not None]

    def _order(self, draw: random.Random, parents: list[UUID]) -> Order:
        kind = draw.random()
        key = draw.choice(KEYS)
        if kind < 0.15:
            return Order(self._spec(draw, key, name="fold", group_key=key, group=SERIAL))
        if kind < 0.3 and not self._moves:
            # Who moves several in several goes may meet a deadlock, as with any rows.
            self._moves = True
            unique = f"{key} {draw.randint(0, 2)}"
            spec = self._spec(draw, key, unique_key=unique)
            return Order(spec, None, draw.random() * 0.05, OnConflict.REPLACE)
        if kind < 0.4 and parents:
            self.made["after"] += 1
            chained = key if draw.random() < 0.5 else None
            return Order(self._spec(draw, chained, after=draw.choice(parents)))
        if kind < 0.45:
            return Order(self._spec(draw, draw.choice(FRAGILE), on_hold=OnHold.BLOCK))
        return Order(self._spec(draw, key))

    def _spec(self, draw: random.Random, key: str | None, **fields: Any) -> JobSpec:
        policy = Policy(
            retries=draw.choice((0, 2, 2, 2)),
            lease=0.5,
            on_exhausted=draw.choice(tuple(OnExhausted)),
        )
        given: dict[str, Any] = {
            "name": "work",
            "on_hold": OnHold.SKIP,
            "policy": policy,
            **fields,
        }
        return JobSpec(new_id(), args="1", enqueued_at=EPOCH, ordering_key=key, **given)

    def _pause(self, draw: random.Random) -> None:
        self.stop.wait(draw.random() * PAUSE_SECONDS_MAX)


@define
class Worker:
    """Real ticks, whose runs end when a draw says so: well, badly, given back, or not at all."""

    dsn: str
    name: str
    stop: Event
    done: Callable[[], bool]
    seen: Counter[str] = field(factory=Counter[str])

    def run(self) -> Counter[str]:
        """Work until told that it is done; how often each thing happened."""
        draw = random.Random(self.name)
        store = PostgresStore(self.dsn)
        store.enroll(worker(self.name))
        ticker = Ticker(
            store, self.name, ("default",), ("fold", "work"), WorkerSettings(), new_id
        )  # fmt: skip
        running: dict[UUID, Job] = {}
        reports: list[Report] = []
        while not self.done():
            reports += self._ends(draw, running)
            slots = SLOTS - len(running)
            try:
                ticked = ticker.tick(Ask(reports, tuple(running.values()), slots, True, True))
                self.seen["swept"] += len(sweep(store, 100))
            except StoreUnavailable:
                self.seen["unavailable"] += 1
                continue
            for job in ticked.lost:
                running.pop(job.id, None)
            running |= {job.id: job for job in ticked.leased}
            self.seen["leased"] += len(ticked.leased)
            self.seen["freed"] += ticked.freed
            reports = [each for each in ticked.settled.again if isinstance(each, Report)]
            if not ticked.leased and not running:
                self.stop.wait(PAUSE_SECONDS_MAX)
        store.close()
        return self.seen

    def _ends(self, draw: random.Random, running: dict[UUID, Job]) -> list[Report]:
        reports: list[Report] = []
        for job in list(running.values()):
            if self.stop.is_set() or draw.random() < 0.5:
                del running[job.id]
                if not self.stop.is_set() and draw.random() < 0.02:
                    self.seen["forgotten"] += 1  # Its lease will end.
                else:
                    reports.append(Report(job, _answer(draw)))
        return reports


def _answer(draw: random.Random) -> Answer:
    kind = draw.random()
    if kind < 0.75:
        return Succeeded()
    if kind < 0.95:
        return Broke("boom", draw.choice((0.0, 0.0, 0.03)))
    return GaveBack(ReleaseReason.SNOOZE, 0.0)
