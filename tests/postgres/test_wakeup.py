"""The bell: heard across processes, after every loss, and silent otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from leasebook.infra.postgres.dsn import InvalidDsn
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.wakeup import PostgresWakeup, channel

from .test_outages import kill

NAME = "leasebook listener"
SOON = 30.0
AT_ONCE = 0.0


@pytest.fixture
def listener(database_dsn: str) -> Iterator[PostgresWakeup]:
    """A bell that hears: what it had to catch up with is over."""
    bell = PostgresWakeup(database_dsn, application_name=NAME)
    assert bell.wait(SOON), "it rings once when it begins to hear"
    yield bell
    bell.close()


def test_a_ring_is_heard_by_everybody_else(database_dsn: str, listener: PostgresWakeup) -> None:
    ringer = PostgresWakeup(database_dsn)
    ringer.ring()
    assert listener.wait(SOON)
    assert not listener.wait(AT_ONCE)
    ringer.close()


def test_a_ring_before_the_wait_counts_once(database_dsn: str, listener: PostgresWakeup) -> None:
    listener.poke()
    listener.poke()
    assert listener.wait(AT_ONCE)
    assert not listener.wait(AT_ONCE)


def test_another_schema_is_another_bell(database_dsn: str, listener: PostgresWakeup) -> None:
    other = PostgresWakeup(database_dsn, "other")
    other.ring()
    other.close()
    ringer = PostgresWakeup(database_dsn)
    ringer.ring()
    ringer.close()
    assert listener.wait(SOON)
    assert not listener.wait(AT_ONCE)


@pytest.mark.case("C15")
@pytest.mark.fault
def test_c15_a_killed_listener_hears_again(database_dsn: str, listener: PostgresWakeup) -> None:
    assert kill(database_dsn, NAME) == 1
    assert listener.wait(SOON), "it rings by itself after a loss, for what it may have missed"
    assert not listener.wait(AT_ONCE), "once"
    ringer = PostgresWakeup(database_dsn)
    ringer.ring()
    assert listener.wait(SOON)
    ringer.close()


@pytest.mark.fault
def test_a_killed_ringer_rings_again(database_dsn: str, listener: PostgresWakeup) -> None:
    ringer = PostgresWakeup(database_dsn, application_name="leasebook ringer")
    ringer.ring()
    assert listener.wait(SOON)
    assert kill(database_dsn, "leasebook ringer") == 1
    ringer.ring()  # This one is lost; polling finds what it told of.
    ringer.ring()
    assert listener.wait(SOON)
    ringer.close()


def test_the_listener_holds_no_transaction(database_dsn: str, listener: PostgresWakeup) -> None:
    with psycopg.connect(database_dsn, autocommit=True) as connection:
        rows = connection.execute(
            "select state, backend_xmin, xact_start from pg_stat_activity"
            " where application_name = %s and datname = current_database()",
            (NAME,),
        ).fetchall()
    assert rows == [("idle", None, None)]


def test_closing_wakes_the_waiter(database_dsn: str, listener: PostgresWakeup) -> None:
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(listener.wait, 60.0)
        listener.close()
        assert answer.result(SOON) is False
    assert listener.wait(60.0) is False


def test_an_unreachable_server_rings_nothing_and_stops_at_once() -> None:
    bell = PostgresWakeup("postgresql://127.0.0.1:1/none")
    assert not bell.wait(0.05)
    bell.ring()
    bell.close()


def test_an_unreadable_dsn_is_refused_at_once() -> None:
    with pytest.raises(InvalidDsn):
        PostgresWakeup("nonsense")


@pytest.mark.parametrize("name", ["leasebook", "Jobs-x", "é" * 31, 'a"b', "x" * 63])
def test_a_channel_is_short_and_plain(name: str) -> None:
    assert channel(Schema(name)) == channel(Schema(name))
    assert len(channel(Schema(name)).encode()) <= 63
    assert channel(Schema(name)).replace("_", "").isalnum()


def test_channels_of_long_names_differ() -> None:
    assert channel(Schema("x" * 62 + "a")) != channel(Schema("x" * 62 + "b"))
