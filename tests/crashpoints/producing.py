"""Enqueueing as an application does it: an order of its own and the jobs for it, or neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
from attrs import frozen

from leasebook import Book, Group

from .scene import Scene

BOOK = Book("postgresql://nobody@127.0.0.1:1/nothing", notify=False)


@BOOK.job
def work(number: int) -> None: ...


@BOOK.job(group=Group(window=0.001, max_hold=0.001))
async def fold(items: list[int]) -> None: ...


Caller = psycopg.Connection[Any]
TRIES_MAX = 10


@frozen
class Enqueueing:
    """A business transaction, tried until its answer is heard.

    ``jobs`` enqueues for order ``number``: jobs, or items, of the numbers 10 * number + 0, 1, ….
    Who knows no key looks for the order before trying again; a ``keyed`` call can be repeated as
    it is.
    """

    name: str
    jobs: Callable[[Caller, int], object]
    size: int = 1
    keyed: bool = False
    given: Callable[[Caller, int], object] | None = None

    def prepare(self, scene: Scene, number: int) -> int:
        """What stands before the transaction begins."""
        if self.given is not None:
            with psycopg.connect(scene.dsn) as caller:
                self.given(caller, number)
        return number

    def act(self, dsn: str, number: int) -> bool:
        """Enqueue.  True: the caller was told that it is committed."""
        for _ in range(TRIES_MAX):
            try:
                with psycopg.connect(dsn) as caller:
                    self._transaction(caller, number)
            except psycopg.OperationalError:
                continue
            return True
        raise AssertionError(f"no answer in {TRIES_MAX} tries")

    def _transaction(self, caller: Caller, number: int) -> None:
        known = caller.execute("select from orders where number = %s", (number,)).fetchone()
        if known is None:
            caller.execute("insert into orders values (%s)", (number,))
        if known is None or self.keyed:
            self.jobs(caller, number)

    def verify(self, scene: Scene, number: int, told: bool | None) -> None:
        """Another producer finishes what this one has not; every job is there, and done, once."""
        if told is None:
            self.act(scene.dsn, number)
        scene.finish(dead=[])
        wanted = Counter(10 * order + n for order in range(number + 1) for n in range(self.size))
        done = scene.done()
        assert done == wanted, f"lost: {wanted - done}, too many: {done - wanted}"


def _numbers(number: int, size: int) -> list[int]:
    return [10 * number + n for n in range(size)]


def _plain(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number)


def _bulk(caller: Caller, number: int) -> None:
    work.enqueue_many(caller, _numbers(number, 5))


def _item(caller: Caller, number: int) -> None:
    fold.enqueue(caller, 10 * number, group_key="k")


def _items(caller: Caller, number: int) -> None:
    fold.enqueue_many(caller, _numbers(number, 5), group_key=str)


def _unique(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number, unique_key="k", on_conflict="keep")


def _delayed(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number, unique_key="k", delay=3_600)


def _replacing(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number, unique_key="k", on_conflict="replace")


def _request(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number, idempotency_key=f"order {number}")


def _keyed_bulk(caller: Caller, number: int) -> None:
    work.enqueue_many(
        caller,
        _numbers(number, 3),
        unique_key=str,
        on_conflict="keep",
        idempotency_key=lambda each: f"part {each}",
    )


def _ordered(caller: Caller, number: int) -> None:
    work.enqueue(caller, 10 * number, ordering_key="k")


def _ordered_bulk(caller: Caller, number: int) -> None:
    work.enqueue_many(caller, _numbers(number, 3), ordering_key="k")


def _chain(caller: Caller, number: int) -> None:
    first = work.enqueue(caller, 10 * number)
    work.enqueue(caller, 10 * number + 1, after=first)


ENQUEUEING = (
    Enqueueing("enqueue one job", _plain),
    Enqueueing("enqueue many jobs", _bulk, 5),
    Enqueueing("enqueue an item", _item),
    Enqueueing("enqueue many items", _items, 5),
    Enqueueing("enqueue with a unique key", _unique, keyed=True),
    Enqueueing("enqueue what replaces another", _replacing, keyed=True, given=_delayed),
    Enqueueing("enqueue with an idempotency key", _request, keyed=True),
    Enqueueing("enqueue many with both keys", _keyed_bulk, 3, keyed=True),
    Enqueueing("enqueue with an ordering key", _ordered),
    Enqueueing("enqueue many of one ordering key", _ordered_bulk, 3),
    Enqueueing("enqueue a job after another", _chain, 2),
)
