"""The whole life of a queue behind a real PgBouncer in transaction mode.

Everything goes through it: the migration, the callers, the workers and their heartbeat children,
and those who look.  Only the tests' own counting goes straight to the server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from leasebook.domain import InvalidValue
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.pooler import PREPARE, is_pooled
from leasebook.infra.postgres.schema.errors import MigrationPooled
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.postgres.wakeup import PostgresWakeup
from tests.plugins.database import assert_lawful
from tests.support.pgbouncer import Pooler, pgbouncer
from tests.support.schemas import with_options
from tests.support.source import TOP
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

NOTICE = "database behind a pooler"


@pytest.fixture
def pooled(empty_database_dsn: str) -> Iterator[Pooler]:
    """A pooler before a migrated database; the migration goes to the server itself."""
    migrate(empty_database_dsn)
    with pgbouncer(empty_database_dsn) as pooler:
        with pytest.raises(MigrationPooled, match="Give the server's own DSN"):
            migrate(pooler.dsn)
        yield pooler
        log = pooler.log
        assert "prepared statement" not in log, log[-2000:]
        assert "ERROR" not in log, log[-2000:]
    assert_lawful(empty_database_dsn)


@pytest.fixture
def pooled_yard(request: pytest.FixtureRequest, pooled: Pooler, tmp_path: Path) -> Iterator[Yard]:
    """A yard whose workers, callers and handlers all go through the pooler."""
    made = Yard(pooled.dsn, tmp_path, request.node.name)
    try:
        yield made
    finally:
        made.finish()
    for worker in made.workers:
        assert "prepared statement" not in "".join(worker.raw)


def leasebook(dsn: str, *arguments: str) -> Any:
    """What a command prints with ``--json``."""
    done = subprocess.run(
        [sys.executable, "-m", "leasebook.infra.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        cwd=TOP,
        env={**os.environ, "LEASEBOOK_DSN": dsn},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


@pytest.mark.case("C19")
def test_c19_the_whole_life_behind_a_pooler(pooled_yard: Yard) -> None:
    yard = pooled_yard
    worker = yard.worker()
    assert len(worker.told(NOTICE)) == 1
    yard.beating(worker)
    with yard.caller() as caller:
        plain = [app.quick.enqueue(caller, number) for number in range(60)]
        retried = app.listed.enqueue(caller)
        snoozed = app.says.enqueue(caller, "snooze")
        for number in range(20):
            app.stream.enqueue(caller, number, group_key=f"key {number % 2}")
        late = app.hung.enqueue(caller, "polite")
        long = app.slow_start.enqueue(caller)
    assert yard.all_over(plain) == {"done": 60}
    yard.began(long)
    # The heartbeat child renews a lease of two seconds through the pooler.
    eventually(lambda: yard.kinds(long).count("heartbeat") > 1, "it is renewed")
    assert yard.over(retried).outcome == "exhausted"
    assert yard.over(snoozed).outcome == "done"
    assert yard.over(late).outcome == "lost"
    yard.open("1")
    assert yard.over(long).outcome == "done"
    assert len(yard.began(long)) == 1
    grouped = {note for effect in yard.effects() if (note := effect.note)}
    assert sorted(int(each) for note in grouped for each in note.split(",")) == list(range(20))
    assert worker.stop() == 0
    held = leasebook(yard.dsn, "stats")
    assert sum(each["held"] for each in held) == 2
    assert leasebook(yard.dsn, "check")["violations"] == []
    assert leasebook(yard.dsn, "list", "--state", "failed")
    leasebook(yard.dsn, "check-schema")


@pytest.mark.fault
@pytest.mark.case("C19")
def test_c19_a_killed_worker_is_noticed_through_the_pooler(pooled_yard: Yard) -> None:
    with pooled_yard.caller() as caller:
        job = app.gated.enqueue(caller, "go")
    first = pooled_yard.worker()
    pooled_yard.began(job)
    first.kill()
    pooled_yard.open("go")
    pooled_yard.worker()
    assert pooled_yard.over(job).outcome == "done"
    assert "lease_expired" in pooled_yard.kinds(job)


@pytest.mark.fault
@pytest.mark.case("C15", "C19")
def test_c15_sessions_killed_behind_the_pooler_are_an_outage_that_passes(
    pooled_yard: Yard, empty_database_dsn: str
) -> None:
    worker = pooled_yard.worker()
    with psycopg.connect(empty_database_dsn, autocommit=True) as direct:
        direct.execute(
            "select pg_terminate_backend(pid, 30000) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    with psycopg.connect(empty_database_dsn) as caller:
        job = app.quick.enqueue(caller)
    assert pooled_yard.over(job).outcome == "done"
    assert worker.stop() == 0


@pytest.mark.case("C19")
def test_c19_nothing_listens_behind_a_pooler(pooled: Pooler, empty_database_dsn: str) -> None:
    """A listener that the pooler lends to others would hear for them, or for nobody."""
    before = set(threading.enumerate())
    bell = PostgresWakeup(pooled.dsn)
    assert not bell.wait(0.3)
    bell.ring()
    with psycopg.connect(empty_database_dsn, autocommit=True) as direct:
        rows = direct.execute(
            "select query from pg_stat_activity where query ilike 'listen%%'"
            " and datname = current_database()"
        ).fetchall()
    assert rows == []
    bell.close()
    left = set(threading.enumerate()) - before
    assert "leasebook wake-up" not in {each.name for each in left}, "it did not wait for ever"
    # Whoever has a connection of its own hears those behind the pooler.
    direct_bell = PostgresWakeup(empty_database_dsn)
    assert direct_bell.wait(30.0)
    behind = PostgresWakeup(pooled.dsn)
    behind.ring()
    assert direct_bell.wait(30.0)
    behind.close()
    direct_bell.close()


def prepared(dsn: str, looks: int = 12) -> str | None:
    """What a store says that looks often enough for its statements to be prepared."""
    store = PostgresStore(dsn)
    try:
        for _ in range(looks):
            with store.transaction() as tx:
                tx.leased_by("w", 1)
    except StoreUnavailable as error:
        return str(error)
    except psycopg.Error as error:
        return str(error)
    finally:
        store.close()
    return None


@pytest.mark.case("C19")
@pytest.mark.parametrize("choice", ["auto", "0", ""])
def test_c19_nothing_is_prepared_behind_a_pooler(
    pooled: Pooler, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv(PREPARE, choice)
    assert prepared(pooled.dsn) is None


@pytest.mark.case("C19")
def test_c19_who_insists_on_preparing_meets_the_pooler(
    empty_database_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the tests above would see it; a PgBouncer from 1.21 may cope."""
    monkeypatch.setenv(PREPARE, "1")
    migrate(empty_database_dsn)
    with pgbouncer(empty_database_dsn) as pooler:
        said = prepared(pooler.dsn)
    assert said is None or "prepared statement" in said


@pytest.mark.case("C19")
def test_c19_a_startup_parameter_that_the_pooler_refuses_is_named(pooled: Pooler) -> None:
    """`options` in a DSN is the user's; nothing of leasebook's own is refused."""
    store = PostgresStore(with_options(pooled.dsn, "extra_float_digits=3"))
    with pytest.raises(StoreUnavailable, match="options"):
        store.beats()
    store.close()


def test_a_pooler_is_seen_and_a_server_is_none(pooled: Pooler, empty_database_dsn: str) -> None:
    for dsn, expected in ((pooled.dsn, True), (empty_database_dsn, False)):
        with psycopg.connect(dsn) as connection:
            assert is_pooled(connection) is expected


def test_prepare_takes_three_words(database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREPARE, "perhaps")
    store = PostgresStore(database_dsn)
    with pytest.raises(InvalidValue, match="LEASEBOOK_PREPARE"):
        store.beats()
    store.close()
