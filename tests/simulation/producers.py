"""Producers: business transactions that enqueue jobs and items, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from attrs import define

from leasebook.domain import (
    Group,
    InvalidValue,
    JobSpec,
    OnConflict,
    OnExhausted,
    OnExpired,
    Policy,
    UniqueKeyTaken,
)
from leasebook.infra.caller_ports import Order, Receipt
from leasebook.infra.memory import MemoryProducer
from leasebook.infra.memory.session import COMMITTED, Session
from leasebook.infra.ports import StoreUnavailable

from .scheduler import Process

if TYPE_CHECKING:
    from .world import World

LONG_SECONDS_MAX = 6.0
SPREAD_SECONDS = 3.0
REQUEST_TRIES = 4
KEYS = ("k", "l")


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
            if chance.random() < 0.8:
                self._is_answered()
                continue
            request = f"request {chance.randint(1, 3)}"
            for _ in range(REQUEST_TRIES):
                if self._is_answered(request):
                    break
        self.finished = True

    def _is_answered(self, request: str | None = None) -> bool:
        """One transaction; whether its end is known.  Only a request may be tried again."""
        try:
            self._transaction(request)
        except (Undone, InvalidValue) as error:
            self._world.scheduler.tell(f"{type(error).__name__}: {error}")
        except StoreUnavailable as error:
            self._world.scheduler.tell(f"{type(error).__name__}: {error}")
            return False
        finally:
            # A bell too many does no harm.
            self._world.ring()
        return True

    def _transaction(self, request: str | None) -> None:
        world, profile = self._world, self._world.profile
        chance, scheduler = world.chance, world.scheduler
        with world.server.transaction() as connection:
            caller = MemoryProducer(connection.session)
            batch = Batch(connection.session, [])
            world.batches.append(batch)
            for _ in range(chance.randint(1, 2)):
                if request is None:
                    orders = [self._order() for _ in range(chance.randint(1, 3))]
                else:
                    orders = [self._single(request, request=request)]
                try:
                    receipts: Sequence[Receipt] = caller.accept(orders)
                except UniqueKeyTaken:
                    profile.fired["(key taken)"] += 1
                else:
                    batch.orders += zip(orders, receipts, strict=True)
                    profile.fired["(stood for another)"] += sum(
                        not each.created for each in receipts
                    )
                if profile.strikes("transaction long"):
                    scheduler.sleep(chance.random() * LONG_SECONDS_MAX)
            if profile.strikes("producer crashed"):
                self.process.dying = True
                scheduler.pause()
            if profile.strikes("transaction rolled back"):
                raise Undone("rolled back")

    def _order(self) -> Order:
        chance = self._world.chance
        if chance.random() < 0.4:
            return self._item()
        key = chance.choice(KEYS) if chance.random() < 0.2 else None
        return self._single(key or str(next(self._world.numbers)), unique_key=key)

    def _item(self) -> Order:
        world = self._world
        spec = JobSpec(
            world.new_id(),
            f"{self._style()}_group",
            str(next(world.numbers)),
            world.clock(),
            policy=self._policy(),
            owner=world.chance.choice((None, None, None, "owner")),
            group_key=world.chance.choice(("a", "a", "b")),
            group=world.group,
        )
        return Order(spec)

    def _single(
        self, what: str, *, unique_key: str | None = None, request: str | None = None
    ) -> Order:
        """Orders of one key or request ask for the same, so that one may stand for the other."""
        world = self._world
        chance = world.chance
        keyed = unique_key is not None or request is not None
        delay = chance.choice((0.0, 0.0, 0.0, 1.0, 3.0))
        expires_at = None
        if chance.random() < 0.15:
            expires_at = world.clock() + timedelta(seconds=delay + chance.uniform(0.2, 3.0))
        spec = JobSpec(
            world.new_id(),
            "async" if keyed else self._style(),
            f'"{what}"',
            world.clock(),
            queue="default" if keyed else chance.choice(("default", "default", "other")),
            priority=chance.choice((1, 5, 9)),
            policy=self._policy(),
            expires_at=expires_at,
            unique_key=unique_key,
        )
        if chance.random() < 0.25:
            world.script.poison.add(spec.id)
        conflict = OnConflict.REJECT if unique_key is None else chance.choice(tuple(OnConflict))
        return Order(spec, None, delay, conflict, request)

    def _style(self) -> str:
        return "async" if self._world.chance.random() < 0.6 else "blocking"

    def _policy(self) -> Policy:
        chance = self._world.chance
        return Policy(
            retries=chance.choice((0, 1, 1, 2, 3)),
            timeout=chance.choice((3.0, 5.0)),
            lease=chance.choice((1.5, 3.0)),
            on_exhausted=chance.choice(tuple(OnExhausted)),
            on_expired=chance.choice((OnExpired.RETRY, OnExpired.RETRY, OnExpired.ABORT)),
        )


def a_group(window: float, max_size: int) -> Group:
    """The group policy of a world: short enough to be due within it."""
    return Group(window=window, max_hold=2.0 * window, max_size=max_size)
