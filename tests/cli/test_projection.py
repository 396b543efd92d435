"""`leasebook projection` on a claim table that was damaged."""

from __future__ import annotations

import re
from uuid import UUID

import psycopg
import pytest

from leasebook.infra.app import rebuild, shadow
from leasebook.infra.cli import projection
from tests.cli.conftest import Leasebook
from tests.support.standing import fill


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


def damage(dsn: str, ids: dict[str, UUID]) -> None:
    """One row is gone, and one is not what it should be."""
    with psycopg.connect(dsn) as connection:
        connection.execute("delete from leasebook.jobs where id = %s", (ids["due"],))
        connection.execute("update leasebook.jobs set priority = 1 where id = %s", (ids["mail"],))


@pytest.mark.acceptance("I13")
def test_verify_tells_and_repair_mends(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    env = {"LEASEBOOK_DSN": database_dsn}
    assert leasebook("projection", "verify", env=env).out == "0 rows differ from the log\n"
    damage(database_dsn, ids)
    found = leasebook("projection", "verify", env=env)
    assert found.code == 1
    assert found.out.splitlines() == [
        f"job {ids['due']}: it is queued and has no row",
        f"job {ids['mail']}: priority is 1, by the log 5",
        "2 rows differ from the log",
    ]
    mended = leasebook("projection", "repair", env=env)
    assert (mended.code, mended.err) == (0, "")
    assert mended.out.splitlines()[-2:] == [
        "2 rows differed from the log",
        "2 mended, 0 left as they are",
    ]
    assert leasebook("projection", "verify", env=env).code == 0


def test_for_programs(leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]) -> None:
    damage(database_dsn, ids)
    answer = leasebook("projection", "repair", "--json", "--dsn", database_dsn)
    assert answer.code == 0
    first, second = answer.document["rows"]
    assert (first["job_id"], first["left"]) == (str(ids["due"]), None)
    assert second["found"] == ["priority is 1, by the log 5"]


def test_what_cannot_be_mended_is_a_finding(
    leasebook: Leasebook,
    database_dsn: str,
    ids: dict[str, UUID],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebuild, "PAUSE_SECONDS", (0.0,))
    monkeypatch.setattr(projection, "SHOWN_MAX", 1)
    damage(database_dsn, ids)
    with psycopg.connect(database_dsn) as holder:
        holder.execute("select from leasebook.jobs where id = %s for update", (ids["mail"],))
        answer = leasebook("projection", "repair", "--dsn", database_dsn)
    assert answer.code == 1
    assert "… and 1 more; --json shows all" in answer.out
    assert answer.out.splitlines()[-1] == "1 mended, 1 left as they are"
    assert leasebook("projection", "repair", "--dsn", database_dsn).code == 0


@pytest.mark.acceptance("E11")
def test_rebuild_makes_the_table_anew(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    damage(database_dsn, ids)
    env = {"LEASEBOOK_DSN": database_dsn}
    words = ("projection", "rebuild")
    refused = leasebook(*words, env=env)
    assert (refused.code, "say --shadow" in refused.err) == (2, True)
    done = leasebook(*words, "--shadow", env=env)
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(
        r"the claim table is made anew from \d+ events; the swap kept others waiting for \d+ ms\n",
        done.out,
    )
    assert leasebook("projection", "verify", env=env).code == 0
    assert leasebook(*words, "--shadow", "--json", env=env).document["tries"] == 1
    assert leasebook(*words, "--discard", env=env).out == "there is no shadow\n"


def test_what_is_in_the_way_of_a_swap_is_told(
    leasebook: Leasebook,
    database_dsn: str,
    ids: dict[str, UUID],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadow, "PAUSE_SECONDS", (0.0,))
    words = ("projection", "rebuild", "--dsn", database_dsn)
    with psycopg.connect(database_dsn) as holder:
        holder.execute("select from leasebook.jobs where id = %s for update", (ids["mail"],))
        answer = leasebook(*words, "--shadow")
        pid = holder.info.backend_pid
    assert answer.code == 2
    first, second = answer.err.splitlines()
    assert first == f"no swap yet: pid {pid} held the table; again in 0 s"
    assert f"in 2 tries pid {pid} held the table. Nothing was swapped" in second
    assert leasebook(*words, "--discard").out == "the shadow is gone\n"
    assert leasebook(*words, "--discard", "--json").document == {"discarded": False}


def test_adopt_says_that_the_log_is_at_home(leasebook: Leasebook, database_dsn: str) -> None:
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(
            """update leasebook.checkpoints set position = '{"system": "1"}'"""
            " where name = 'log home'"
        )
    words = ("replay", "export", "file.zip", "--dsn", database_dsn)
    refused = leasebook(*words)
    assert (refused.code, "written in cluster 1" in refused.err) == (2, True)
    assert leasebook("projection", "adopt", "--dsn", database_dsn).code == 0
    assert leasebook(*words).code == 0
