"""An odd schema, and a writer that has no right to look into it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from leasebook.infra.app.mapping import read_map
from leasebook.infra.postgres.schema.migrate import migrate

from .ground import OLD_MAP, OLD_QUEUE, Move


@pytest.fixture
def odd(empty_database_dsn: str) -> Iterator[Move]:
    migrate(empty_database_dsn, "Jobs-x")
    made = Move(empty_database_dsn, "Jobs-x")
    made.say(OLD_QUEUE)
    yield made
    made.close()


@pytest.fixture
def writer(odd: Move) -> Iterator[str]:
    """A role that may write to the old table and to nothing else."""
    name = f"lb_writer_{secrets.token_hex(4)}"
    odd.say(f"create role {name}; grant insert, update on old_queue to {name}")
    yield name
    odd.say(f"drop owned by {name}; drop role {name}")


@pytest.mark.acceptance("A06", "Q28")
def test_an_odd_schema_and_a_writer_without_rights(odd: Move, writer: str) -> None:
    odd.say("insert into old_queue (task, payload) values ('tidy', '{}')")
    assert odd.run().imported == 1
    assert odd.run().already == 1
    assert len(odd.jobs()) == 1
    with odd.table() as table, table.guarding(read_map(OLD_MAP).reading, "Don't; 100% sure."):
        pass
    with psycopg.connect(odd.dsn, options="-c search_path=public") as late:
        late.execute(f"set role {writer}".encode())
        with pytest.raises(psycopg.Error, match="has moved to leasebook") as refused:
            late.execute("insert into old_queue (task) values ('tidy')")
    assert refused.value.diag.message_hint == "Don't; 100% sure."


@pytest.mark.acceptance("Q28")
def test_a_guard_that_fails_inside_leaves_nothing(odd: Move) -> None:
    with (
        odd.table() as table,
        pytest.raises(KeyboardInterrupt),
        table.guarding(read_map(OLD_MAP).reading, "x"),
    ):
        raise KeyboardInterrupt
    with odd.table() as table:
        assert not table.guarded()
    odd.say("insert into old_queue (task) values ('tidy')")
