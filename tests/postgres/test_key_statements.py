"""The statements of keys as files that a reviewer reads, and their plans on 100,000 rows.

`LEASEBOOK_UPDATE_GOLDEN=1 pytest tests/postgres/test_key_statements.py` writes the files anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from leasebook.domain.job import JobSpec
from leasebook.infra.caller_ports import Order
from leasebook.infra.postgres.accept_parts import job_columns
from leasebook.infra.postgres.holders import EPOCH
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import enqueue, keys
from tests.plugins.database import with_database

from .planned import Scan, scans

GOLDEN = Path(__file__).parent / "golden"
SCHEMA = Schema("leasebook")
STATEMENTS: dict[str, Callable[[Schema], str]] = {
    "keys_accept_keyed": keys.accept_keyed,
    "keys_holders": keys.holders,
    "keys_lock_holders": keys.lock_holders,
    "keys_reschedule": keys.reschedule,
    "keys_remember": keys.remember,
    "keys_recall": keys.recall,
    "keys_adopt": keys.adopt,
}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_the_golden_file_is_the_statement(name: str) -> None:
    path, text = GOLDEN / f"{name}.sql", STATEMENTS[name](SCHEMA).strip() + "\n"
    if os.environ.get("LEASEBOOK_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_only_the_schema_differs_and_it_is_quoted(name: str) -> None:
    odd = STATEMENTS[name](Schema('Jobs-"x"'))
    assert odd.replace('"Jobs-""x"""."', '"leasebook"."') == STATEMENTS[name](SCHEMA)


KEYED = {
    "unique_key", "ordering_key", "on_hold", "blocked_by", "blocked_due", "has_waiter",
    "args json", "unique_key text", "ordering_key text", "blocked_by uuid",
}  # fmt: skip


def test_a_job_with_a_key_is_a_job_like_any_other() -> None:
    """The two statements that let jobs be born read and write the same columns, but for the key."""
    plain, keyed = enqueue.accept_jobs(SCHEMA), keys.accept_keyed(SCHEMA)
    for begins in ("as spec (", '"jobs" (', '"job_events" ('):
        lists = [
            {each.strip() for each in text.split(begins, 1)[1].split(")", 1)[0].split(",")}
            for text in (plain, keyed)
        ]
        assert lists[1] - lists[0] <= KEYED
        assert lists[0] <= lists[1]


FILL = """
insert into leasebook.jobs (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at, unique_key)
select pg_catalog.gen_random_uuid(), n, 'default', 5, 'work', '{}', now(), 3, 600, 600, 'hold',
       1, 'queued', now() + interval '1 day', now(), case when n % 2 = 0 then 'key ' || n end
  from generate_series(1, 100000) as n;
insert into leasebook.request_keys (key, job_id, digest)
select 'key ' || n, pg_catalog.gen_random_uuid(), '' from generate_series(1, 100000) as n;
analyze;
"""


@pytest.fixture(scope="module")
def full_dsn(server_dsn: str) -> Iterator[str]:
    """A database with 50,000 unique keys in use among 100,000 jobs, and as many requests."""
    name = "leasebook_test_key_plans"
    with psycopg.connect(server_dsn, autocommit=True) as admin:
        admin.execute(f"drop database if exists {name} with (force)")
        admin.execute(f"create database {name}")
        try:
            dsn = with_database(server_dsn, name)
            migrate(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(FILL)
            yield dsn
        finally:
            admin.execute(f"drop database if exists {name} with (force)")


def read(found: list[Scan]) -> dict[str, int]:
    """How many rows came out of each table, none of which was walked."""
    counts: dict[str, int] = {}
    for scan in found:
        assert scan.kind in ("Index Scan", "Index Only Scan", "Bitmap Heap Scan"), scan
        counts[scan.table] = counts.get(scan.table, 0) + scan.read
    return counts


@pytest.mark.parametrize("size", [1, 500])
def test_keys_are_looked_up(full_dsn: str, size: int) -> None:
    """In a session of the caller's, with the planner as it comes."""
    taken = [f"key {2 * number}" for number in range(1, size + 1)]
    orders = [
        Order(JobSpec(UUID(int=number), "work", "{}", EPOCH, unique_key=key))
        for number, key in enumerate([*taken, *(f"new {key}" for key in taken)], 1)
    ]
    held = {"queues": ["default"] * size, "keys": taken}
    new = {"keys": taken, "ids": [str(each.spec.id) for each in orders[:size]]}
    asked: list[tuple[Callable[[Schema], str], dict[str, Any], dict[str, int]]] = [
        (keys.accept_keyed, job_columns(orders) | {"schema": "leasebook"}, {"jobs": size}),
        (keys.holders, held, {"jobs": size}),
        (keys.lock_holders, held, {"jobs": 2 * size}),
        (keys.remember, {**new, "digests": [""] * size}, {}),
        (keys.recall, {"keys": taken}, {"request_keys": size}),
        (keys.adopt, new, {"request_keys": size}),
    ]
    for statement, params, most in asked:
        with psycopg.connect(full_dsn) as connection:
            connection.execute("set plan_cache_mode = force_custom_plan")
            found = read(scans(connection, statement(SCHEMA), params))
            connection.rollback()
        assert set(found) == set(most), (statement, found)
        assert all(found[table] <= bound for table, bound in most.items()), (statement, found)
