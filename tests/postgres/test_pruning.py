"""Whole streams of jobs that are over leave the log, by one function of a role without a login."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from leasebook import Book, InvalidValue
from leasebook.domain.commands import Complete, CompleteEffect, StartEffect
from leasebook.domain.values import EffectKind
from leasebook.infra.app.rebuild import verify
from leasebook.infra.app.shadow import rebuild
from leasebook.infra.codec import KINDS, state_after
from leasebook.infra.postgres.claim_table import PostgresClaimTable
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.shadow import PostgresShadow
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.postgres.windows import PostgresWindows
from leasebook.infra.pruning_ports import Pruned, PruningRefused
from leasebook.projections.status import status
from tests.conformance.making import (
    claimed,
    complete,
    enqueue,
    lease,
    new_spec,
    tell,
    wanted,
    write,
)
from tests.support.schemas import role, with_options
from tests.support.source import TOP
from tests.support.standing import fill

pytestmark = pytest.mark.acceptance("Q16")

AT_ONCE = timedelta(0)
MIGRATION = TOP / "migrations" / "versions" / "0005_summaries.sql"
#: Jobs that are over, past any worker: an ``enqueued``, a ``leased`` and a ``completed`` of each.
DONE = """
insert into leasebook.job_events (job_id, version, at, kind, due_at, lease, worker, data)
select ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, e.version,
       now() - interval '40 days', e.kind, now() - interval '40 days', e.lease, e.worker, e.data
  from generate_series(%(first)s::int, %(last)s::int) as n
 cross join (values
       (1, 'enqueued.v1', null::bigint, null, '{"name":"work","queue":"default","priority":5,'
        '"retries":3,"timeout":600,"lease":600,"on_exhausted":"hold","args":null}'::json),
       (2, 'leased.v1', null, 'w1', '{"start":1}'),
       (3, 'completed.v1', 2, null, null)) as e (version, kind, lease, worker, data)
"""


@pytest.fixture
def store(database_dsn: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database_dsn)) as made:
        yield made


@pytest.fixture
def book(database_dsn: str) -> Iterator[Book]:
    with Book(database_dsn, notify=False) as made:
        yield made


def ask(dsn: str, statement: str, params: Any = None) -> list[Any]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), params)
        return cursor.fetchall() if cursor.description else []


def count(dsn: str, table: str) -> int:
    return int(ask(dsn, f"select count(*) from leasebook.{table}")[0][0])


def logged(dsn: str) -> set[UUID]:
    """The jobs that the log tells of."""
    return {job for (job,) in ask(dsn, "select distinct job_id from leasebook.job_events")}


def over(store: PostgresStore, number: int = 1, **fields: Any) -> UUID:
    """A job that is done."""
    [job] = enqueue(store, new_spec(number, **fields))
    write(store, complete(lease(store, job)))
    return job.id


@pytest.mark.case("C60")
def test_only_what_is_over_and_not_held_goes(database_dsn: str, book: Book) -> None:
    ids = fill(database_dsn)
    before = logged(database_dsn)
    rows = ask(database_dsn, "select * from leasebook.jobs order by id")
    open_jobs = {job for (job,) in ask(database_dsn, "select id from leasebook.jobs")}
    done = book.prune(AT_ONCE)
    left = logged(database_dsn)
    assert left == open_jobs
    assert ids["done"] not in left
    assert (done.looked, done.pruned) == (len(before), len(before - open_jobs))
    assert ask(database_dsn, "select * from leasebook.jobs order by id") == rows


@pytest.mark.unchecked("events are written without a worker")
@pytest.mark.case("C25")
def test_a_backlog_goes_in_short_transactions(database_dsn: str, store: PostgresStore) -> None:
    ask(database_dsn, DONE, {"first": 1, "last": 20_000})
    enqueue(store, *(new_spec(number) for number in range(30_000, 30_010)))
    told: list[Pruned] = []
    dsn = with_options(database_dsn, "statement_timeout=1s")
    with Book(dsn, notify=False) as book:
        done = book.prune(timedelta(days=30), told=told.append)
        assert (done.looked, done.pruned, done.kept) == (20_010, 20_000, 0)
        assert [each.pruned for each in told[:3]] == [1_000, 2_000, 3_000]
        assert count(database_dsn, "job_events") == 10
        assert count(database_dsn, "job_summaries") == 20_000
        assert len(claimed(store, wanted(limit=100))) == 10
        assert book.prune(timedelta(days=30)).pruned == 0


@pytest.mark.unchecked("events are written without a worker")
@pytest.mark.case("C25", "C40")
def test_prunings_at_once_share_the_work_while_jobs_are_claimed(
    database_dsn: str, book: Book, store: PostgresStore
) -> None:
    ask(database_dsn, DONE, {"first": 1, "last": 5_000})
    enqueue(store, *(new_spec(number) for number in range(30_000, 30_100)))
    done: list[Pruned] = []
    threads = [Thread(target=lambda: done.append(book.prune(AT_ONCE, batch=200))) for _ in range(3)]
    for each in threads:
        each.start()
    for number in range(40_000, 40_100):
        over(store, number)
    for each in threads:
        each.join()
    assert len(done) == 3
    rest = book.prune(AT_ONCE).pruned
    assert sum(each.pruned for each in done) + rest == 5_100
    assert count(database_dsn, "job_summaries") == 5_100
    assert count(database_dsn, "job_events") == 100


def test_a_batch_that_is_broken_off_leaves_whole_streams(database_dsn: str, book: Book) -> None:
    with closing(PostgresStore(database_dsn)) as store:
        for number in range(1, 8):
            over(store, number)

    class Broken(Exception):
        """Stands for a crash between two transactions."""

    def broken(_: Pruned) -> None:
        raise Broken

    with pytest.raises(Broken):
        book.prune(AT_ONCE, batch=3, told=broken)
    assert count(database_dsn, "job_events") == 4 * 3
    assert book.prune(AT_ONCE, batch=3).pruned == 4


def test_a_reader_of_windows_loses_nothing(
    database_dsn: str, book: Book, store: PostgresStore
) -> None:
    def read() -> list[UUID]:
        with windows.next("mirror") as window:
            assert window is not None
            return [each.job_id for each in window.events()]

    with closing(PostgresWindows(database_dsn)) as windows:
        one = over(store, 1)
        assert set(read()) == {one}
        two = over(store, 2)
        done = book.prune(AT_ONCE)
        assert (done.pruned, done.kept, done.reader) == (1, 1, "mirror")
        assert read() == [two] * 3
        assert book.prune(AT_ONCE).pruned == 1
        over(store, 3)
        windows.forget("mirror")
        assert book.prune(AT_ONCE).pruned == 1


def test_a_rebuild_that_was_broken_off_goes_on_without_ghosts(
    database_dsn: str, book: Book, store: PostgresStore
) -> None:
    """What it copied as open and ended since stays in the log until it has seen that."""
    [job] = enqueue(store, new_spec(1))
    leased = lease(store, job)
    with closing(PostgresShadow(database_dsn)) as shadow:
        shadow.begin()
        with shadow.copying() as part:
            _copy(part)
        write(store, complete(leased))
        done = book.prune(AT_ONCE)
        assert (done.pruned, done.kept) == (0, 1)
        rebuild(shadow)
    assert count(database_dsn, "jobs") == 0
    assert book.prune(AT_ONCE).pruned == 1


def _copy(part: Any) -> None:
    from leasebook.projections.claim import expected
    from leasebook.projections.streams import steps

    for streams in part.pieces():
        rows = [expected(steps(each)) for each in streams]
        part.write([each for each in rows if each is not None])


def test_verify_and_rebuild_go_on_without_pruned_streams(
    database_dsn: str, book: Book, store: PostgresStore
) -> None:
    fill(database_dsn)
    rows = count(database_dsn, "jobs")
    book.prune(AT_ONCE)
    with closing(PostgresClaimTable(database_dsn)) as table:
        assert list(verify(table)) == []
    with closing(PostgresShadow(database_dsn)) as shadow:
        rebuild(shadow)
    assert count(database_dsn, "jobs") == rows
    over(store, 100)
    assert book.prune(AT_ONCE).pruned == 1


def test_receipts_of_effects_are_kept(database_dsn: str, book: Book, store: PostgresStore) -> None:
    [job] = enqueue(store, new_spec(1, owner="ann"))
    job = lease(store, job)
    assert job.lease is not None
    token, at = job.lease.token, job.at
    call = EffectKind.CALL
    job = tell(store, job, StartEffect(at, token, "post:1", "chat", call))
    job = tell(store, job, CompleteEffect(at, token, "post:1", "chat", call, '{"ts":7}'))
    write(store, complete(job))
    kept = "select owner, receipts from leasebook.job_summaries"
    assert ask(database_dsn, kept) == [("ann", None)]
    assert book.prune(AT_ONCE).pruned == 1
    receipt = {"key": "post:1", "to": "chat", "receipt": {"ts": 7}}
    assert ask(database_dsn, kept) == [("ann", [receipt])]


def test_a_request_keeps_its_job(database_dsn: str) -> None:
    with Book(database_dsn, notify=False) as book:

        @book.job
        def work() -> None: ...

        with psycopg.connect(database_dsn) as caller:
            first = work.enqueue(caller, idempotency_key="r")
        assert first.id is not None
        with closing(PostgresStore(database_dsn)) as store:
            with store.transaction() as tx:
                job = tx.load([first.id])[first.id]
            job = lease(store, job)
            assert job.lease is not None
            tell(store, job, Complete(job.at, job.lease.token, "null"))
        assert book.prune(AT_ONCE).pruned == 1
        with psycopg.connect(database_dsn) as caller:
            again = work.enqueue(caller, idempotency_key="r")
        assert (again.id, again.created) == (first.id, False)
        assert book.status(None, first.id) == "succeeded"


def test_the_function_knows_every_end() -> None:
    told = dict(re.findall(r"\('(\w+\.v\d+)', '(\w+)'\)", MIGRATION.read_text("utf-8")))
    ends = {kind: state_after(kind) for kind in KINDS.values()}
    assert told == {
        kind: str(status(state))
        for kind, state in ends.items()
        if state is not None and state in ("done", "failed")
    }


@pytest.mark.acceptance("I16")
def test_nobody_can_be_the_role_and_it_can_do_nothing_else(database_dsn: str) -> None:
    asked = "select rolcanlogin, rolsuper from pg_roles where rolname = 'leasebook_retention'"
    assert ask(database_dsn, asked) == [(False, False)]
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(database_dsn, name):
        ask(database_dsn, f"alter role {name} login")
        ask(database_dsn, f"grant all on all tables in schema leasebook to {name}")
        ask(database_dsn, f"grant usage on schema leasebook to {name}")
        dsn = make_conninfo(database_dsn, user=name)
        for statement in (
            "set role leasebook_retention",
            "select leasebook.prune('0', null, 1)",
            "select leasebook.appoint_retention()",
            "delete from leasebook.job_events",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(dsn, statement)
        with Book(dsn, notify=False) as book, pytest.raises(PruningRefused, match="appoint"):
            book.prune(AT_ONCE)
        ask(database_dsn, f"grant execute on function leasebook.prune to {name}")
        with Book(dsn, notify=False) as book:
            assert book.prune(AT_ONCE) == Pruned()
    for statement in (
        "update leasebook.job_events set kind = 'other'",
        "truncate leasebook.job_events",
        "delete from leasebook.audit_log",
        "delete from leasebook.job_summaries",
        "delete from leasebook.request_keys",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(database_dsn, f"set role leasebook_retention; {statement}")


def test_who_may_not_make_roles_has_all_but_pruning(empty_database_dsn: str) -> None:
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(empty_database_dsn, name) as identifier:
        ask(empty_database_dsn, f"alter role {name} login")
        with psycopg.connect(empty_database_dsn, autocommit=True) as admin:
            database = sql.Identifier(admin.info.dbname)
            admin.execute(sql.SQL("grant create on database {} to {}").format(database, identifier))
        dsn = make_conninfo(empty_database_dsn, user=name)
        migrate(dsn)
        migrate(dsn)
        with Book(dsn, notify=False) as book:
            with pytest.raises(PruningRefused, match="no retention role yet"):
                book.prune(AT_ONCE)
            ask(empty_database_dsn, "select leasebook.appoint_retention()")
            assert book.prune(AT_ONCE) == Pruned()


def test_what_is_refused(book: Book, database_dsn: str) -> None:
    ages: tuple[Any, ...] = (timedelta(seconds=-1), 30, "30d", None)
    for age in ages:
        with pytest.raises(InvalidValue, match="older_than"):
            book.prune(age)
    batches: tuple[Any, ...] = (0, 1_001, 1.5, "9", True)
    for batch in batches:
        with pytest.raises(InvalidValue, match="batch"):
            book.prune(AT_ONCE, batch=batch)
    for given in ("'-1s', null, 1", "'1s', null, 1001", "null, null, 1", "'1s', null, null"):
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            ask(database_dsn, f"select leasebook.prune({given})")
