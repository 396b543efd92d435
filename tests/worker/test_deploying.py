"""What the page on deploying prints does what it says."""

from __future__ import annotations

import re
from secrets import token_hex

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from leasebook.domain.errors import UniqueKeyTaken
from leasebook.infra.app.importing import import_table
from leasebook.infra.app.mapping import read_map
from leasebook.infra.postgres.old_table import find_table
from leasebook.infra.postgres.schema.check import require_schema
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.schema.tables import TABLES
from leasebook.infra.worker.settings import WorkerSettings
from tests.support.schemas import role
from tests.support.source import TOP
from tests.support.yard import Yard
from tests.worker import app

PAGE = (TOP / "docs" / "deploying.md").read_text("utf-8")


WORKER, APPLICATION, IMPORT = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
OLD_QUEUE = "create table public.old_queue (id int primary key, task text, payload json)"
OLD_MAP = 'name = "task"\nargs = "payload"'


def granted(printed: str, printed_role: str, name: str) -> str:
    """What the page prints, for another role; making the role is the test's."""
    grants = [each for each in printed.split(";") if "create role" not in each]
    return ";".join(grants).replace(printed_role, name)


def test_the_printed_grants_are_enough_for_a_worker(yard: Yard) -> None:
    name = f"leasebook_test_{token_hex(4)}"
    with role(yard.dsn, name):
        grants = granted(WORKER, "leasebook_worker", name)
        yard.sql(f"alter role {name} login")
        yard.sql(f"alter role {name} set search_path = leasebook, public")
        yard.sql(f"{grants}; grant all on effects to {name}")
        owner, yard.dsn = yard.dsn, make_conninfo(yard.dsn, user=name)
        with yard.caller() as caller:
            plain = app.quick.enqueue_many(caller, range(10))
            retried = app.listed.enqueue(caller)
            app.bulk.enqueue_many(caller, range(50), group_key=lambda item: "k")
            app.quick.enqueue(caller, 1, unique_key="k", idempotency_key="r")
            owned = app.quick.enqueue(caller, owner="ann")
        worker = yard.worker()
        assert yard.all_over(plain) == {"done": 10}
        assert yard.over(retried).outcome == "exhausted"
        assert yard.over(owned).outcome == "done"
        worker.tells("queue", logger="leasebook.queue")
        assert worker.stop() == 0
        yard.dsn = owner
    assert not worker.told("store unavailable")
    assert not worker.told("queue cannot be counted")


def test_the_printed_grants_are_enough_for_an_application_and_an_import(yard: Yard) -> None:
    name = f"leasebook_test_{token_hex(4)}"
    yard.sql(OLD_QUEUE)
    yard.sql("""insert into public.old_queue values (1, 'quick', '{"n": 1}')""")
    with role(yard.dsn, name):
        yard.sql(f"alter role {name} login")
        yard.sql(f"alter role {name} set search_path = public")
        yard.sql(granted(APPLICATION, "shop", name))
        dsn = make_conninfo(yard.dsn, user=name)
        with psycopg.connect(dsn) as caller:
            app.quick.enqueue_many(caller, range(10), subject="s")
            app.bulk.enqueue(caller, 1, group_key="k")
            for how in ("reject", "keep", "replace"):
                app.quick.options(unique_key="k", on_conflict=how).enqueue(caller, 1)
                if how == "reject":
                    with pytest.raises(UniqueKeyTaken):
                        app.quick.options(unique_key="k").enqueue(caller, 1)
            first, again = (app.quick.enqueue(caller, 7, idempotency_key="r") for _ in range(2))
            assert (first.created, again.created) == (True, False)
            assert app.book.alive(caller, "s")
            assert first.id is not None
            assert app.book.status(caller, first.id) == "queued"
            app.quick.enqueue(caller, 8, after=first.id)
        yard.sql(granted(IMPORT, "shop", name))
        yard.sql(f"grant select, update on public.old_queue to {name}")
        with psycopg.connect(dsn, autocommit=True) as connection:
            require_schema(connection, Schema("leasebook"))
            table = find_table(connection, Schema("leasebook"), "old_queue")
            report = import_table(table, read_map(OLD_MAP), app.book.jobs, execute=True)
        assert (report.imported, report.complete) == (1, True)
    assert yard.rows() == 14


def test_the_grants_name_every_table() -> None:
    """A table that a migration adds is granted to somebody, or nobody could use it."""
    named = set(re.findall(r"leasebook\.(\w+)", WORKER + APPLICATION + IMPORT))
    assert {each.name for each in TABLES} <= named


def test_every_grace_that_is_named_covers_a_whole_stop() -> None:
    settings = WorkerSettings()
    longest = settings.drain + settings.cancel + settings.settle + settings.farewell
    named = re.findall(r"(?:TimeoutStopSec=|GracePeriodSeconds: |stop_grace_period: )(\d+)", PAGE)
    assert len(named) == 3
    assert {int(each) for each in named} == {45}
    assert longest <= 45
