"""Windows part the log: every committed event lies in exactly one, whatever transactions do."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.connection import Link
from leasebook.infra.postgres.position import (
    ForeignLog,
    ForeignPosition,
    LogOnStandby,
    Position,
    WroteBefore,
)
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.server import embedded_server
from leasebook.infra.postgres.statements import windows as statements
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.postgres.windows import PostgresWindows, bounds
from tests.conformance import making
from tests.support.schemas import role, with_options
from tests.support.servers import Outside

EVENT = (
    "insert into leasebook.job_events (job_id, version, at, kind, due_at)"
    " values (%s, %s, clock_timestamp(), 'rescheduled.v1', now()) returning event_id"
)
EVENTS = "select event_id from leasebook.job_events order by 1"
WRITERS = 6
STEPS = 300
ALONE = pytest.mark.unchecked("events are written without a birth")


@pytest.fixture
def windows(database_dsn: str) -> Generator[PostgresWindows]:
    made = PostgresWindows(database_dsn)
    yield made
    made.close()


def read(windows: PostgresWindows, name: str = "reader") -> list[int]:
    """The numbers of the events in this reader's next window."""
    with windows.next(name) as window:
        assert window is not None
        return [each.event_id for each in window.events()]


def committed(dsn: str) -> list[int]:
    """The numbers of all events."""
    with psycopg.connect(dsn) as connection:
        return [row[0] for row in connection.execute(EVENTS)]


def write(connection: psycopg.Connection[Any], number: int, version: int = 1) -> int:
    """One event in the transaction that is open."""
    row = connection.execute(EVENT, (making.job_id(number), version)).fetchone()
    assert row is not None
    event_id: int = row[0]
    return event_id


@pytest.mark.acceptance("I15")
@pytest.mark.case("C52")
@ALONE
def test_a_lower_number_that_commits_later_is_read(
    database_dsn: str, windows: PostgresWindows
) -> None:
    with psycopg.connect(database_dsn) as slow, psycopg.connect(database_dsn) as quick:
        late = write(slow, 1)
        soon = [write(quick, number) for number in (2, 3, 4)]
        quick.commit()
        assert late < min(soon)
        assert read(windows) == soon
        assert read(windows) == []
        slow.commit()
        assert read(windows) == [late]
        assert read(windows) == []


@pytest.mark.acceptance("I15")
@ALONE
def test_savepoints_rollbacks_and_idle_transactions(
    database_dsn: str, windows: PostgresWindows
) -> None:
    """A savepoint has a number of its own, but what is stored is that of its transaction."""
    with ExitStack() as stack:
        one, two, three, idle = (
            stack.enter_context(psycopg.connect(database_dsn)) for _ in range(4)
        )
        idle.execute("select 1")
        with one.transaction():
            before = write(one, 1)
            with one.transaction():
                inside = write(one, 2)
            with one.transaction() as lost:
                write(one, 3)
                raise psycopg.Rollback(lost)
            assert read(windows) == []
        two.execute("select pg_current_xact_id()")
        write(three, 4)
        assert read(windows) == [before, inside]
        three.rollback()
        last = write(two, 5)
        two.commit()
        assert read(windows) == [last]
        assert committed(database_dsn) == [before, inside, last]


@pytest.mark.acceptance("I15")
@pytest.mark.parametrize("seed", range(4))
@ALONE
def test_windows_part_the_log_whatever_transactions_do(
    database_dsn: str, windows: PostgresWindows, seed: int
) -> None:
    """Writers begin, write, nest, commit and roll back in any order; two readers read between."""
    rng = random.Random(seed)
    seen: dict[str, list[int]] = {"one": [], "two": []}
    with ExitStack() as stack:
        writers = [stack.enter_context(psycopg.connect(database_dsn)) for _ in range(WRITERS)]
        for step in range(STEPS):
            _any_step(rng, rng.choice(writers), step)
            if rng.random() < 0.2:
                name = rng.choice(list(seen))
                seen[name] += read(windows, name)
        for writer in writers:
            (writer.commit if rng.random() < 0.5 else writer.rollback)()
    everything = committed(database_dsn)
    assert len(everything) > STEPS / 10
    for name, events in seen.items():
        events += read(windows, name)
        assert sorted(events) == everything, "each committed event is in one window"


def _any_step(rng: random.Random, writer: psycopg.Connection[Any], step: int) -> None:
    match rng.choice(["write", "write", "write", "nest", "undo", "number", "commit", "roll back"]):
        case "write":
            write(writer, step)
        case "nest":
            with writer.transaction():
                write(writer, step)
        case "undo":
            with writer.transaction() as inner:
                write(writer, step)
                raise psycopg.Rollback(inner)
        case "number":
            writer.execute("select pg_current_xact_id()")
        case "commit":
            writer.commit()
        case _:
            writer.rollback()


@pytest.mark.acceptance("I15")
@pytest.mark.case("C54")
def test_events_of_one_job_come_in_order_though_their_transactions_began_otherwise(
    database_dsn: str, windows: PostgresWindows
) -> None:
    """The one with the lower number appends second: its number comes first, its event last."""
    early, late = PostgresStore(database_dsn), PostgresStore(database_dsn)
    try:
        (job,) = making.enqueue(early, making.new_spec(1))
        read(windows)
        versions: list[int] = []
        with early.transaction() as first:
            first.bury("nobody")
            first.lead("whatever")
            numbered = first._link.ask("select pg_current_xact_id()::text::bigint", {})[0][0]  # pyright: ignore[reportPrivateUsage]
            leased = making.lease(late, job)
            versions += _versions(windows)
            changed = making.complete(leased)
            assert not first.append([changed])
        versions += _versions(windows)
        assert versions == [2, 3]
        lease, end = (each.xid for each in late_stream(late, job.id)[1:])
        assert numbered == end < lease
    finally:
        early.close()
        late.close()


def _versions(windows: PostgresWindows) -> list[int]:
    with windows.next("reader") as window:
        assert window is not None
        return [each.version for each in window.events()]


def late_stream(store: PostgresStore, job_id: UUID) -> list[Any]:
    """The whole stream of a job."""
    with store.transaction() as transaction:
        return list(transaction.stream(job_id))


@ALONE
def test_a_window_comes_again_when_its_effects_did_not_become_durable(
    database_dsn: str, windows: PostgresWindows
) -> None:
    with psycopg.connect(database_dsn) as connection:
        event = write(connection, 1)
    with pytest.raises(ZeroDivisionError):
        _begin(windows, event, fails)
    with pytest.raises(StoreUnavailable):
        _begin(windows, event, lambda link: cut(database_dsn, link))
    assert read(windows) == [event]
    assert read(windows) == []


def fails(link: Link) -> None:
    """An effect, and then an error."""
    link.ask("create table leasebook.effect ()", {})
    raise ZeroDivisionError


def cut(dsn: str, link: Link) -> None:
    """The session ends in the middle."""
    ((pid,),) = link.ask("select pg_backend_pid()", {})
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("select pg_terminate_backend(%s, 30000)", (pid,))


def _begin(windows: PostgresWindows, event: int, effect: Callable[[Link], None]) -> None:
    with windows.next("reader") as window:
        assert window is not None
        assert [each.event_id for each in window.events()] == [event]
        effect(window.link)


def test_one_reads_under_a_name_at_a_time(database_dsn: str, windows: PostgresWindows) -> None:
    other = PostgresWindows(database_dsn)
    try:
        with windows.next("reader") as ours:
            assert ours is not None
            with other.next("reader") as theirs:
                assert theirs is None
            with other.next("another") as theirs:
                assert theirs is not None
    finally:
        other.close()


def test_a_window_is_asked_for_before_the_first_write(windows: PostgresWindows) -> None:
    """What the transaction writes afterwards would count as read."""
    windows.position()
    with windows.next("reader") as window:
        assert window is not None
        window.link.ask("select pg_current_xact_id()", {})
        with pytest.raises(WroteBefore, match="before the first write"):
            windows._here()  # pyright: ignore[reportPrivateUsage]


def test_the_readers_own_events_are_in_its_next_window(windows: PostgresWindows) -> None:
    with windows.next("reader") as window:
        assert window is not None
        window.link.ask(
            "insert into leasebook.audit_log (kind, detail) values ('worker_started', '{}')", {}
        )
        assert list(window.audit()) == []
    with windows.next("reader") as window:
        assert window is not None
        assert [line.kind for line in window.audit()] == ["worker_started"]


def test_a_place_of_another_cluster_is_refused(database_dsn: str, windows: PostgresWindows) -> None:
    read(windows)
    change = "update leasebook.checkpoints set position = %s where name = %s"
    elsewhere = '{"snapshot": "9:9:", "system": "1", "timeline": "00000001"}'
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        connection.execute(change, (elsewhere, "reader"))
        with pytest.raises(ForeignPosition, match="belongs to cluster 1"):
            read(windows)
        windows.forget("reader")
        read(windows)
        connection.execute(change, ('{"system": "1"}', "log home"))
        with pytest.raises(ForeignLog, match="written in cluster 1"):
            read(windows)
        windows.adopt()
        read(windows)
    here = windows.position()
    with (
        pytest.raises(ForeignPosition, match="timeline 00000009"),
        windows.between(Position(here.snapshot, here.system, "00000009"), here),
    ):
        pass


@ALONE
def test_a_window_is_found_by_the_index_also_beside_an_old_open_transaction(
    database_dsn: str, windows: PostgresWindows
) -> None:
    with psycopg.connect(database_dsn) as old, psycopg.connect(database_dsn) as writer:
        write(old, 1)
        for number in range(2, 50):
            write(writer, number)
            writer.commit()
        after = windows.position()
        assert after.open
        write(writer, 50)
        writer.commit()
        with windows.between(after, windows.position()) as window:
            question = f"explain {statements.events(Schema())}"
            rows = window.link.ask(question, bounds(window.after, window.upto))
            assert len(list(window.events())) == 1
        plan = "\n".join(row[0] for row in rows)
        assert plan.count("Bitmap Index Scan on job_events_xid") == 2, plan


@ALONE
def test_a_reader_needs_not_own_the_tables(database_dsn: str) -> None:
    """Only an owner may summarize an index; the function does it for everybody."""
    name = f"leasebook_test_{secrets.token_hex(6)}"
    with role(database_dsn, name) as reader, psycopg.connect(database_dsn) as connection:
        write(connection, 1)
        for grant in (
            "grant usage on schema leasebook to {role}",
            "grant select on all tables in schema leasebook to {role}",
            "grant insert, update on leasebook.checkpoints to {role}",
        ):
            connection.execute(sql.SQL(grant).format(role=reader))
        connection.commit()
        windows = PostgresWindows(with_options(database_dsn, f"role={name}"))
        try:
            assert len(read(windows)) == 1
        finally:
            windows.close()


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Path]:
    """Where a server of this test's own may be."""
    outside = Outside(tmp_path / "data")
    yield outside.data_dir
    outside.clean()


@pytest.mark.acceptance("I15")
@pytest.mark.fault
@pytest.mark.slow
def test_prepared_transactions_and_standbys(private: Path) -> None:
    """What is prepared outlives its session; a standby has no word of what is open."""
    settings = {"fsync": "off", "max_prepared_transactions": "4"}
    with embedded_server(private, settings=settings, linger_seconds=0) as server:
        migrate(server.dsn)
        windows = PostgresWindows(server.dsn)
        with psycopg.connect(server.dsn) as connection:
            event = write(connection, 1)
            connection.execute("prepare transaction 'slow'")
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            soon = write(connection, 2)
            assert read(windows) == [soon]
            connection.execute("commit prepared 'slow'")
            assert read(windows) == [event]
            assert read(windows) == []
        windows.close()
    Outside(private).wait_gone()
    (_cluster(private) / "standby.signal").touch()
    with embedded_server(private, settings=settings, linger_seconds=0) as server:
        windows = PostgresWindows(server.dsn)
        with pytest.raises(LogOnStandby, match="DSN of the primary"):
            windows.position()
        windows.close()
    Outside(private).wait_gone()


def _cluster(folder: Path) -> Path:
    """Where the server keeps its files."""
    return next(each.parent.parent for each in folder.rglob("global/pg_control"))
