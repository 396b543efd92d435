"""A claim table that is wrong in every way there is, and mended from its log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from leasebook.domain.commands import TakeLease
from leasebook.infra.app import rebuild
from leasebook.infra.app.rebuild import BUSY, NO_BIRTH, TAKEN, Difference, repair, verify
from leasebook.infra.postgres.claim_table import PostgresClaimTable
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.rebuild_ports import NotALiveLog, Place, RepairElsewhere
from tests.conformance import making
from tests.support.standing import fill

#: What somebody does to the job of a name, and how it is told.
WRONG = {
    "delete from leasebook.jobs where id = %(due)s": ("due", "it is queued and has no row"),
    "update leasebook.jobs set priority = 9 where id = %(mail)s": ("mail", "priority is 9, by the"),
    "update leasebook.jobs set args = '[1]' where id = %(mail)s": ("mail", "args differ from"),
    "update leasebook.jobs set version = 9 where id = %(running)s": ("running", "version is 9"),
    "update leasebook.jobs set worker = null, lease = null, started_at = null, state = 'queued'"
    " where id = %(running)s": ("running", "state is queued, by the log leased"),
    "update leasebook.jobs set held = false where id = %(held)s": (
        "held",
        "its row cannot be read",
    ),
    "update leasebook.jobs set suspect = true where id = %(due)s": ("due", "suspect is True"),
    "update leasebook.jobs set items = '{}' where id = %(grouped)s": ("grouped", "items differ"),
    "update leasebook.jobs set seq = 0 where id = %(delayed)s": ("delayed", "seq is 0, by its"),
    "update leasebook.jobs set state = 'odd' where id = %(delayed)s": (
        "delayed",
        "its row cannot be read",
    ),
    "update leasebook.jobs set id = %(done)s where id = %(mail)s": (
        "done",
        "it is done and not held, yet it has a row",
    ),
}


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


@pytest.fixture
def table(database_dsn: str) -> Iterator[PostgresClaimTable]:
    made = PostgresClaimTable(database_dsn, chunk_events=3)
    yield made
    made.close()


def execute(dsn: str, statement: str, params: Any = None) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement.encode(), params)


def everything(dsn: str) -> list[tuple[object, ...]]:
    """The whole claim table."""
    with psycopg.connect(dsn) as connection:
        return connection.execute("select j.*::text from leasebook.jobs as j order by 1").fetchall()


@pytest.mark.acceptance("I13")
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_found_and_mended(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID], wrong: str
) -> None:
    before = everything(database_dsn)
    assert list(verify(table)) == []
    execute(database_dsn, wrong, ids)
    name, told = WRONG[wrong]
    found = {each.job_id: each for each in verify(table)}
    assert told in "; ".join(found[ids[name]].found)
    assert everything(database_dsn) != before, "verify only reads"
    mended = list(repair(table))
    assert [each.job_id for each in mended] == list(found)
    assert all(each.left is None for each in mended)
    assert list(verify(table)) == []
    assert everything(database_dsn) == before
    with psycopg.connect(database_dsn) as connection:
        lines = connection.execute(
            "select job_id from leasebook.audit_log where kind = 'row_repaired' order by id"
        ).fetchall()
    assert [line[0] for line in lines] == list(found)


@pytest.mark.acceptance("I13")
def test_a_table_that_was_emptied_comes_back(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID]
) -> None:
    before = everything(database_dsn)
    execute(database_dsn, "truncate leasebook.jobs")
    told: list[tuple[int, int]] = []
    mended = list(repair(table, lambda events, total: told.append((events, total))))
    assert len(mended) == len(before)
    assert everything(database_dsn) == before
    assert told[-1][0] == told[-1][1] > 0
    assert len(told) > 2, "in chunks"
    assert table.place() == Place(), "the next repair begins at the beginning"


@pytest.mark.unchecked("a row that no stream tells of stays until it is mended")
def test_a_row_without_a_stream_goes(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID]
) -> None:
    """Also one behind the last job of the log."""
    stray = UUID(int=2**128 - 1)
    execute(database_dsn, "update leasebook.jobs set id = %s where id = %s", (stray, ids["due"]))
    found = {each.job_id: each.found for each in repair(table)}
    assert found[stray] == ("it has a row and no stream",)
    assert list(verify(table)) == []


@pytest.mark.acceptance("I13")
def test_who_is_waited_for_learns_of_it(database_dsn: str, table: PostgresClaimTable) -> None:
    """It stands in another stream: that of the job that waits."""
    store = PostgresStore(database_dsn)
    try:
        first, second = making.enqueue(
            store,
            making.new_spec(1, ordering_key="k"),
            making.new_spec(2, ordering_key="k"),
        )
        making.tell(store, second, TakeLease(second.due_at, "w1", first.id))
    finally:
        store.close()
    forget = "update leasebook.jobs set has_waiter = false"
    execute(database_dsn, forget)
    (found,) = verify(table)
    assert found == Difference(first.id, ("it does not know that another job waits for it",))
    assert [each.job_id for each in repair(table)] == [first.id]
    assert list(verify(table)) == []
    execute(database_dsn, "truncate leasebook.jobs")
    assert len(list(repair(table))) == 2
    assert list(verify(table)) == [], "whichever of the two came first"


def test_a_row_that_somebody_holds_is_left(
    database_dsn: str,
    table: PostgresClaimTable,
    ids: dict[str, UUID],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others of its chunk are mended; the next repair begins anew and gets it."""
    monkeypatch.setattr(rebuild, "PAUSE_SECONDS", (0.0,))
    execute(database_dsn, "update leasebook.jobs set priority = 1")
    with psycopg.connect(database_dsn) as holder:
        holder.execute("select from leasebook.jobs where id = %s for update", (ids["due"],))
        mended = list(repair(table))
    left = [each for each in mended if each.left is not None]
    assert left == [Difference(ids["due"], (), BUSY)]
    assert [each.job_id for each in repair(table)] == [ids["due"]]


@pytest.mark.unchecked("a unique key has two holders on purpose")
def test_a_row_whose_key_another_has_is_left_and_the_others_mended(
    database_dsn: str, table: PostgresClaimTable
) -> None:
    store = PostgresStore(database_dsn)
    try:
        one, _ = making.enqueue(store, making.new_spec(1, unique_key="k"), making.new_spec(2))
        execute(database_dsn, "truncate leasebook.jobs")
        making.enqueue(store, making.new_spec(3, unique_key="k"))
    finally:
        store.close()
    mended = {each.job_id: each for each in repair(table)}
    assert {each.int & 0xFF: found.left for each, found in mended.items()} == {1: TAKEN, 2: None}
    assert [each.job_id for each in verify(table)] == [one.id]


@pytest.mark.unchecked("a stream lacks its birth on purpose")
def test_a_damaged_stream_makes_no_row(database_dsn: str, table: PostgresClaimTable) -> None:
    execute(
        database_dsn,
        "insert into leasebook.job_events (job_id, version, at, kind, due_at)"
        " values (%s, 2, now(), 'rescheduled.v1', now())",
        (making.job_id(1),),
    )
    expected = [Difference(making.job_id(1), (NO_BIRTH,), NO_BIRTH)]
    assert list(verify(table)) == expected
    assert list(repair(table)) == expected


def test_one_repairs_at_a_time(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID]
) -> None:
    other = PostgresClaimTable(database_dsn)
    try:
        with table.mending([ids["due"]]), pytest.raises(RepairElsewhere, match="at work"):
            list(repair(other))
    finally:
        other.close()


def test_a_log_that_was_imported_gets_no_rows(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID]
) -> None:
    home = "update leasebook.checkpoints set position = %s where name = 'log home'"
    execute(database_dsn, home, ('{"system": "bundle"}',))
    with pytest.raises(NotALiveLog, match="would run again"):
        list(repair(table))


REPAIR_AND_DIE = """
import os, signal, sys
from leasebook.infra.app.rebuild import repair
from leasebook.infra.postgres.claim_table import PostgresClaimTable
chunks = []
def told(events, total):
    chunks.append(events)
    if len(chunks) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
list(repair(PostgresClaimTable(sys.argv[1], chunk_events=3), told))
"""


@pytest.mark.acceptance("I13")
@pytest.mark.case("C56")
@pytest.mark.fault
def test_a_repair_that_was_killed_goes_on_where_it_was(
    database_dsn: str, table: PostgresClaimTable, ids: dict[str, UUID]
) -> None:
    before = everything(database_dsn)
    execute(database_dsn, "truncate leasebook.jobs")
    command = [sys.executable, "-c", REPAIR_AND_DIE, database_dsn]
    search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": search}, timeout=60)
    assert done.returncode == -signal.SIGKILL
    place, half = table.place(), everything(database_dsn)
    assert place.last is not None
    assert 0 < len(half) < len(before)
    rest = [each.job_id for each in repair(table)]
    assert len(rest) == len(before) - len(half)
    assert all(each > place.last for each in rest)
    assert everything(database_dsn) == before
