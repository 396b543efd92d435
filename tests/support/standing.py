"""A queue with a job in every state, for tests of what people see."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg

from leasebook import Book, Group
from leasebook.domain.commands import Fail
from leasebook.infra.postgres.store import PostgresStore
from tests.conformance import making

HOUR = timedelta(hours=1)


def fill(dsn: str, schema: str = "leasebook") -> dict[str, UUID]:
    """One job in every state on queue ``default``, one on ``mail``, two items in the inbox.

    The ids by what became of the job.
    """
    store = PostgresStore(dsn, schema=schema)
    try:
        ids = _jobs(store)
    finally:
        store.close()
    _items(dsn, schema)
    return ids


def _jobs(store: PostgresStore) -> dict[str, UUID]:
    at = making.now(store)
    born = making.enqueue(
        store,
        making.new_spec(1, label="the first", subject="page:1"),
        making.new_spec(2, owner="ada"),
        making.new_spec(3),
        making.new_spec(4),
        making.new_spec(5, args='{"n":5,"deep":[1,{"x":null}]}'),
        making.new_spec(6, queue="mail", name="send"),
    )
    due, leased, retrying, held, done, mail = born
    making.write(store, making.birth(making.new_spec(7), at, at + HOUR))
    making.write(store, making.group_birth(8, at, 3, key="a.md"))
    running = making.lease(store, leased, "ada#000000000001")
    for job, retry in ((retrying, True), (held, False)):
        lost = making.lease(store, job, "grace#000000000002")
        assert lost.lease is not None
        error = f"Broken: job {job.id}"
        making.tell(store, lost, Fail(at, lost.lease.token, error, 3_600.0, retry))
    making.write(store, making.complete(making.lease(store, done), '{"made":[1,2]}'))
    return {
        "due": due.id,
        "running": running.id,
        "retrying": retrying.id,
        "held": held.id,
        "done": done.id,
        "mail": mail.id,
        "delayed": making.job_id(7),
        "grouped": making.job_id(8),
    }


def _items(dsn: str, schema: str) -> None:
    book = Book(dsn, schema=schema, notify=False)

    @book.job(name="fold", queue="pages", group=Group(window=10, max_hold=60))
    async def fold(items: list[int]) -> None: ...

    with psycopg.connect(dsn) as connection:
        fold.enqueue_many(connection, [1, 2], group_key="b.md")
