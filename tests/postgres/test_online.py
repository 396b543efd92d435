"""Upgrading a queue that is in use: nobody waits for long, and what was cut off goes on.

`make rehearse` runs this on 2,000,000 rows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leasebook import migrations
from leasebook.domain.errors import InvalidValue
from leasebook.infra.postgres.schema.check import check_schema, require_schema
from leasebook.infra.postgres.schema.errors import MigrationFailed, SchemaIncomplete
from leasebook.infra.postgres.schema.migrate import migrate, migrate_sql
from leasebook.migrations import REVISIONS, script
from tests.support.schemas import snapshot, with_options
from tests.support.traffic import WAIT_SECONDS, traffic, until

FIRST = "0001"
#: Revisions from which an upgrade changes the claim table.
CHANGE_JOBS = ("0001", "0002")
#: Revisions from which an upgrade makes an index.
MAKE_INDEXES = ("0001", "0002", "0003")
ROWS = int(os.environ.get("LEASEBOOK_TEST_MIGRATION_ROWS", "200000"))
MIGRATORS = 20
BLOCKED_SECONDS_MAX = 1.0
HOLD_TRIES = 3

FILL = """
insert into leasebook.jobs (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at)
select pg_catalog.gen_random_uuid(), n, 'default', 5, 'work', '{"n": 1}', now(), 3, 600, 600,
       'hold', 1, 'queued', now() + interval '1 day', now()
  from generate_series(1, %s) as n
"""

#: Processes of one parent, which has loaded everything, so that they begin at the same moment.
MIGRATE_AT_ONCE = """
import os, sys, traceback
from leasebook.infra.postgres.schema.migrate import migrate, migrate_sql
migrate_sql()
children = []
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        try:
            migrate(sys.argv[1])
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


@pytest.fixture
def old_dsn(empty_database_dsn: str) -> str:
    """A database at the first revision."""
    migrate(empty_database_dsn, to=FIRST)
    return empty_database_dsn


@pytest.fixture(params=REVISIONS[:-1])
def revision(request: pytest.FixtureRequest) -> str:
    """A revision that is not the newest."""
    return str(request.param)


@pytest.fixture
def older_dsn(empty_database_dsn: str, revision: str) -> str:
    """A database at each revision that is not the newest."""
    migrate(empty_database_dsn, to=revision)
    return empty_database_dsn


@contextmanager
def old_snapshot(dsn: str) -> Generator[psycopg.Connection[Any]]:
    """A transaction that began before, and has read the claim table."""
    with psycopg.connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select from leasebook.jobs limit 1")
        yield connection
        connection.rollback()


@pytest.mark.case("C58")
@pytest.mark.slow
@pytest.mark.parametrize("revision", CHANGE_JOBS)
def test_no_writer_waits_for_long_behind_an_upgrade(older_dsn: str) -> None:
    """With rows, with traffic, and with a reader who keeps the table for a while."""
    with psycopg.connect(older_dsn) as connection:
        connection.execute(FILL, (ROWS,))
    with ThreadPoolExecutor(1) as thread, traffic(older_dsn) as watch:
        with old_snapshot(older_dsn):
            upgrade: Future[None] = thread.submit(migrate, older_dsn)
            until(lambda: len(watch.attempts) >= HOLD_TRIES or upgrade.done(), "it did not try")
            assert not upgrade.done(), "the reader has the table"
        upgrade.result(WAIT_SECONDS * 10)
    assert check_schema(older_dsn) == ()
    assert len(watch.attempts) >= HOLD_TRIES
    assert watch.blocked_seconds < BLOCKED_SECONDS_MAX, watch.blocked_seconds
    assert watch.looks > 100, "the watch looked too seldom to know"


@pytest.mark.case("C58")
@pytest.mark.slow
def test_twenty_migrators_at_once(old_dsn: str) -> None:
    """None waits inside a statement: an index that is built concurrently would wait for it."""
    command = [sys.executable, "-c", MIGRATE_AT_ONCE, old_dsn, str(MIGRATORS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert check_schema(old_dsn) == ()


def test_an_upgraded_schema_is_a_new_schema(older_dsn: str) -> None:
    migrate(older_dsn)
    migrate(older_dsn, "new")
    dsn = with_options(older_dsn, "search_path=")
    upgraded, new = (snapshot(dsn, name) for name in ("leasebook", "new"))
    renamed = [tuple(map(as_leasebook, row)) for row in new]
    assert upgraded == renamed


def as_leasebook(value: object) -> object:
    """What the catalog says of the schema ``new``, had it the name that all have."""
    if not isinstance(value, str):
        return value
    return value.replace("new.", "leasebook.").replace('"new"', '"leasebook"')


@contextmanager
def held_up(dsn: str, upgrade_dsn: str) -> Generator[tuple[Future[None], psycopg.Connection[Any]]]:
    """An upgrade whose catalog changes are done, and whose index waits for an old snapshot."""
    with (
        ThreadPoolExecutor(1) as thread,
        psycopg.connect(dsn, autocommit=True) as admin,
        psycopg.connect(dsn) as reader,
    ):
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("select from leasebook.workers limit 1")
        upgrade = thread.submit(migrate, upgrade_dsn)
        until(lambda: waiting_builder(admin) is not None or upgrade.done(), "no index is built")
        yield upgrade, admin


def waiting_builder(admin: psycopg.Connection[Any]) -> tuple[int, float] | None:
    """Who builds an index, and for how many seconds it has been at it, once it waits."""
    row = admin.execute(
        "select p.pid, extract(epoch from clock_timestamp() - a.query_start)::float8"
        " from pg_stat_progress_create_index as p join pg_stat_activity as a using (pid)"
        " where p.phase like 'waiting%' and a.wait_event_type = 'Lock'"
    ).fetchone()
    return None if row is None else (row[0], row[1])


def test_the_printed_upgrade_does_the_same(older_dsn: str, revision: str) -> None:
    text = migrate_sql(since=revision)
    assert ("index concurrently" in text) == (revision in MAKE_INDEXES)
    assert ("create unique index" in text) == (revision == FIRST)
    with pytest.raises(InvalidValue, match="The released ones are 0001"):
        migrate_sql(since="0000")
    with psycopg.connect(older_dsn, autocommit=True) as connection:
        for statement in parts_of(text):
            connection.execute(statement.encode())
    assert check_schema(older_dsn) == ()
    printed = snapshot(older_dsn, "leasebook")
    migrate(older_dsn)
    assert printed == snapshot(older_dsn, "leasebook")


def parts_of(text: str) -> list[str]:
    """What psql sends one by one: transactions, and indexes between them."""
    found = re.split(r"(?im)^(?=begin;)|(?<=commit;)\n", text)
    return [each for each in found if each.strip()]


@pytest.mark.case("C58")
def test_an_index_that_was_cut_off_is_made_again(old_dsn: str) -> None:
    with held_up(old_dsn, old_dsn) as (upgrade, admin):
        builder = waiting_builder(admin)
        assert builder is not None
        admin.execute("select pg_terminate_backend(%s)", (builder[0],))
        with pytest.raises(MigrationFailed, match="un it again"):
            upgrade.result(WAIT_SECONDS)
    problems = check_schema(old_dsn)
    assert any("jobs_unique_key" in each and "(invalid)" in each for each in problems)
    migrate(old_dsn)
    assert check_schema(old_dsn) == ()


def test_time_outs_of_the_role_do_not_end_an_upgrade(old_dsn: str) -> None:
    impatient = with_options(old_dsn, "statement_timeout=100", "lock_timeout=100")

    def long_at_it() -> bool:
        builder = waiting_builder(admin)
        return upgrade.done() or (builder is not None and builder[1] > 0.3)

    with held_up(old_dsn, impatient) as (upgrade, admin):
        until(long_at_it, "it is not that slow")
    assert upgrade.result(WAIT_SECONDS) is None
    assert check_schema(old_dsn) == ()


def test_steps_that_were_done_are_done_again_without_harm(older_dsn: str, revision: str) -> None:
    with psycopg.connect(older_dsn) as connection:
        connection.execute("alter table leasebook.jobs add column if not exists unique_key text")
        connection.execute("alter table leasebook.jobs add column if not exists on_expired text")
    migrate(older_dsn)
    assert check_schema(older_dsn) == ()
    with psycopg.connect(older_dsn) as connection:
        connection.execute("update leasebook.leasebook_version set version_num = %s", (revision,))
    migrate(older_dsn)
    assert check_schema(older_dsn) == ()


def test_a_table_that_is_never_free_is_left_alone(
    old_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "TRY_SECONDS", 0.0)
    with psycopg.connect(old_dsn) as reader:
        reader.execute("select from leasebook.jobs limit 1")
        with pytest.raises(MigrationFailed, match="Some session keeps a lock") as failed:
            migrate(old_dsn)
        assert failed.value.sqlstate == "55P03"
    migrate(old_dsn)
    assert check_schema(old_dsn) == ()


@pytest.mark.acceptance("A01")
def test_a_newer_release_names_what_an_older_schema_lacks(old_dsn: str) -> None:
    with pytest.raises(SchemaIncomplete) as refused:
        require_schema(old_dsn)
    text = str(refused.value)
    for name in ("unique_key", "jobs_unique_key", "request_keys", f"holds {FIRST}"):
        assert name in text
    assert text.endswith("Run: leasebook migrate --schema leasebook")


@pytest.mark.parametrize(
    "name", ["0002_operable.sql", "0003_order.sql", "0004_windows.sql", "0005_summaries.sql"]
)
def test_each_step_is_found(name: str) -> None:
    file = Path(migrations.__file__).parent / "versions" / name
    steps = script.STEP.split(file.read_text("utf-8"))
    assert all(line.startswith("--") for line in steps[0].strip().splitlines())
    assert all(step.strip().endswith(";") for step in steps[1:])
