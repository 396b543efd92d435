"""The throwaway databases of the tests themselves."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from leasebook.infra.postgres.server import binaries
from tests.plugins import database
from tests.plugins.database import chosen_kind, with_database


@pytest.mark.acceptance("A15")
@pytest.mark.parametrize("run", ["first", "second"])
def test_each_test_gets_a_fresh_migrated_database(database_dsn: str, run: str) -> None:
    with psycopg.connect(database_dsn) as connection:
        found = connection.execute("SELECT count(*) FROM leasebook.job_events").fetchone()
        assert found == (0,)
        connection.execute("CREATE TABLE mine AS SELECT 1")
        connection.commit()
        # A session that is left open does not keep the database.
        left = psycopg.connect(database_dsn)
        assert not left.closed


@pytest.mark.acceptance("A15")
def test_the_order_of_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEASEBOOK_TEST_SERVER", raising=False)
    monkeypatch.setenv("LEASEBOOK_TEST_DSN", "postgresql:///tests")
    monkeypatch.setattr(database, "docker_answers", lambda: True)
    assert chosen_kind() == "dsn"
    monkeypatch.delenv("LEASEBOOK_TEST_DSN")
    assert chosen_kind() == "docker"
    monkeypatch.setattr(database, "docker_answers", lambda: False)
    assert chosen_kind() == "embedded"
    monkeypatch.setenv("LEASEBOOK_TEST_SERVER", "docker")
    assert chosen_kind() == "docker"


@pytest.mark.acceptance("A15")
@pytest.mark.parametrize(
    ("name", "value", "seen"),
    [
        ("LEASEBOOK_TEST_DSN", "host=/nowhere connect_timeout=1", "does not answer"),
        ("LEASEBOOK_TEST_SERVER", "docker", "does not start"),
        ("LEASEBOOK_TEST_SERVER", "sqlite", "'sqlite', not one of"),
        ("LEASEBOOK_TEST_SERVER", "system", "is system and /nowhere is empty"),
    ],
)
def test_without_a_server_it_is_an_error_and_no_skip(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, name: str, value: str, seen: str
) -> None:
    for other in ("LEASEBOOK_TEST_DSN", "LEASEBOOK_TEST_SERVER"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(binaries, "SYSTEM_FOLDER", Path("/nowhere"))
    # Nobody listens there.
    monkeypatch.setenv("DOCKER_HOST", f"unix://{pytester.path}/docker.sock")
    pytester.makepyfile("def test_it(_admin):\n    assert _admin\n")
    result = pytester.runpytest_inprocess("-p", "tests.plugins.database")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*cannot run tests that need PostgreSQL*{seen}*"])
    result.stdout.fnmatch_lines(["*Set LEASEBOOK_TEST_DSN*"])
    result.stdout.fnmatch_lines(["PostgreSQL for tests: *"])


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        (
            "postgresql://me:p%40ss@host:5433/old?sslmode=require",
            "postgresql://me:p%40ss@/new?host=host&port=5433&sslmode=require",
        ),
        ("host=/run/pg user=me dbname=old", "postgresql://me@/new?host=/run/pg"),
        ("", "postgresql:///new"),
    ],
)
def test_another_database_of_the_same_server(dsn: str, expected: str) -> None:
    changed = with_database(dsn, "new")
    assert conninfo_to_dict(changed) == conninfo_to_dict(expected)
