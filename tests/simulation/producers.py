"""Producers: business transactions that enqueue jobs and items, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import define

from leasebook.domain import Group, InvalidValue, JobSpec, OnExhausted, Policy
from leasebook.infra.caller_ports import Order, Receipt
from leasebook.infra.memory import MemoryProducer
from leasebook.infra.memory.session import COMMITTED, Session
from leasebook.infra.ports import StoreUnavailable

from .scheduler import Process

if TYPE_CHECKING:
    from .world import World

LONG_SECONDS_MAX = 6.0
SPREAD_SECONDS = 3.0


class Undone(Exception):
    """The business changed its mind."""


@define(eq=False)
class Batch:
    """What one transaction enqueued; whether it counts is for its session to tell."""

    session: Session
    orders: list[tuple[Order, Receipt]]

    @property
    def committed(self) -> bool:
        return self.session.ended == COMMITTED


class Producer:
    """One application that enqueues now and then."""

    def __init__(self, world: World, number: int) -> None:
        self.process = Process(f"producer {number}")
        self.finished = False
        self._world = world
        self.process.on_death = self._gone
        world.processes.append(self.process)
        world.scheduler.spawn(self.process, self.process.name, self._run)

    def _gone(self) -> None:
        self.finished = True

    def _run(self) -> None:
        world = self._world
        chance, scheduler = world.chance, world.scheduler
        for _ in range(chance.randint(1, 2)):
            scheduler.sleep(chance.random() * SPREAD_SECONDS / 2)
            try:
                self._transaction()
            except (StoreUnavailable, Undone, InvalidValue) as error:
                scheduler.tell(f"{type(error).__name__}: {error}")
                # Nobody knows whether it was committed; a bell too many does no harm.
            world.ring()
        self.finished = True

    def _transaction(self) -> None:
        world, profile = self._world, self._world.profile
        chance, scheduler = world.chance, world.scheduler
        with world.server.transaction() as connection:
            caller = MemoryProducer(connection.session)
            batch = Batch(connection.session, [])
            world.batches.append(batch)
            for _ in range(chance.randint(1, 2)):
                orders = [self._order() for _ in range(chance.randint(1, 3))]
                receipts: Sequence[Receipt] = caller.accept(orders)
                batch.orders += zip(orders, receipts, strict=True)
                if profile.strikes("transaction long"):
                    scheduler.sleep(chance.random() * LONG_SECONDS_MAX)
            if profile.strikes("producer crashed"):
                self.process.dying = True
                scheduler.pause()
            if profile.strikes("transaction rolled back"):
                raise Undone("rolled back")

    def _order(self) -> Order:
        world = self._world
        chance, number = world.chance, next(world.numbers)
        is_async, grouped = chance.random() < 0.6, chance.random() < 0.4
        name = "async" if is_async else "blocking"
        lease = chance.choice((1.5, 3.0))
        policy = Policy(
            retries=chance.choice((0, 1, 1, 2, 3)),
            timeout=chance.choice((3.0, 5.0)),
            lease=lease,
            on_exhausted=chance.choice(tuple(OnExhausted)),
        )
        queue, priority = chance.choice(("default", "default", "other")), chance.choice((1, 5, 9))
        if grouped:
            spec = JobSpec(
                world.new_id(),
                f"{name}_group",
                str(number),
                world.clock(),
                policy=policy,
                owner=chance.choice((None, None, None, "owner")),
                group_key=chance.choice(("a", "a", "b")),
                group=world.group,
            )
            return Order(spec)
        delay = chance.choice((0.0, 0.0, 0.0, 1.0, 3.0))
        expires_at = None
        if chance.random() < 0.15:
            expires_at = world.clock() + timedelta(seconds=delay + chance.uniform(0.2, 3.0))
        spec = JobSpec(
            world.new_id(),
            name,
            str(number),
            world.clock(),
            queue=queue,
            priority=priority,
            policy=policy,
            expires_at=expires_at,
        )
        if chance.random() < 0.25:
            world.script.poison.add(spec.id)
        return Order(spec, delay=delay)


def a_group(window: float, max_size: int) -> Group:
    """The group policy of a world: short enough to be due within it."""
    return Group(window=window, max_hold=2.0 * window, max_size=max_size)
