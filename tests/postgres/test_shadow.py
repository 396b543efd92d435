"""The claim table made anew from its log, and swapped in."""

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
from leasebook.infra.app import shadow as app
from leasebook.infra.app.rebuild import verify
from leasebook.infra.app.shadow import rebuild
from leasebook.infra.postgres.claim_table import PostgresClaimTable
from leasebook.infra.postgres.schema.check import check_schema
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.shadow import PostgresShadow
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.rebuild_ports import (
    GateShut,
    NotALiveLog,
    RebuildElsewhere,
    RebuildRefused,
    ShadowPlace,
)
from tests.conformance import making
from tests.support.standing import fill

#: Everything that the table is beside its rows, without the oids.
DEFINITION = """
select 'index', pg_get_indexdef(i.indexrelid), i.indisvalid::text
  from pg_index as i where i.indrelid = 'leasebook.jobs'::regclass
union all
select 'constraint', k.conname, pg_get_constraintdef(k.oid)
  from pg_constraint as k where k.conrelid = 'leasebook.jobs'::regclass
union all
select 'right', coalesce(r.rolname, 'public'), g.privilege_type || g.is_grantable
  from pg_class as c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as g
  left join pg_roles as r on r.oid = g.grantee where c.oid = 'leasebook.jobs'::regclass
union all
select 'right to a column', a.attname, g.privilege_type
  from pg_attribute as a, aclexplode(a.attacl) as g where a.attrelid = 'leasebook.jobs'::regclass
union all
select 'table', c.relowner::regrole::text, c.reloptions::text
  from pg_class as c where c.oid = 'leasebook.jobs'::regclass
union all
select 'comment', d.objsubid::text, d.description
  from pg_description as d where d.objoid = 'leasebook.jobs'::regclass
order by 1, 2, 3
"""
LEFT = """
select relname from pg_class
 where relnamespace = 'leasebook'::regnamespace and relname like '%%shadow%%'
"""

#: A rebuild that is killed when a method of the shadow has been called for the n-th time.
REBUILD_AND_DIE = """
import os, signal, sys
from leasebook.infra.app.shadow import rebuild
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.shadow import PostgresShadow
from leasebook.infra.postgres.connection import Link
shadow, left = PostgresShadow(sys.argv[1], chunk_events=3), int(sys.argv[2])
def counted(plain):
    def call(*args, **options):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*args, **options)
    return call
for name in ("say", "ask", "once", "commit"):
    setattr(Link, name, counted(getattr(Link, name)))
rebuild(shadow)
print(sys.argv[2] + " was enough")
"""


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


@pytest.fixture
def shadow(database_dsn: str) -> Iterator[PostgresShadow]:
    made = PostgresShadow(database_dsn, chunk_events=3)
    yield made
    made.close()


def ask(dsn: str, statement: str, params: Any = None) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), params)
        return cursor.fetchall() if cursor.description else []


def everything(dsn: str) -> list[tuple[Any, ...]]:
    """The whole claim table."""
    return ask(dsn, "select j.*::text from leasebook.jobs as j order by 1")


def differing(dsn: str) -> list[object]:
    table = PostgresClaimTable(dsn)
    try:
        return list(verify(table))
    finally:
        table.close()


@pytest.mark.acceptance("E11", "I13")
def test_the_table_is_made_anew(
    database_dsn: str, shadow: PostgresShadow, ids: dict[str, UUID]
) -> None:
    """Its rows and everything else of it: nobody can tell it from the old one."""
    before = everything(database_dsn)
    ask(database_dsn, "create index mine on leasebook.jobs (label) where label <> ''")
    ask(database_dsn, "grant select, insert on leasebook.jobs to public")
    ask(database_dsn, "grant update (label) on leasebook.jobs to public")
    definition = ask(database_dsn, DEFINITION)
    oid = ask(database_dsn, "select 'leasebook.jobs'::regclass::oid")
    ask(database_dsn, "delete from leasebook.jobs where id = %s", [ids["due"]])
    ask(database_dsn, "update leasebook.jobs set priority = 1, has_waiter = true")
    told: list[tuple[int, int]] = []
    done = rebuild(shadow, lambda events, total: told.append((events, total)))
    assert done.tries == 1
    assert everything(database_dsn) == before
    assert differing(database_dsn) == []
    assert check_schema(database_dsn) == ()
    assert ask(database_dsn, "select 'leasebook.jobs'::regclass::oid") != oid
    assert ask(database_dsn, DEFINITION) == definition
    assert ask(database_dsn, LEFT) == []
    assert len(told) > 3, "in chunks"
    ((detail,),) = ask(
        database_dsn, "select detail from leasebook.audit_log where kind = 'table_rebuilt'"
    )
    assert detail["rows"] == len(before)
    assert rebuild(shadow).events == done.events, "and again"


def test_who_is_waited_for_knows_of_it(database_dsn: str, shadow: PostgresShadow) -> None:
    """It stands in another stream, whether that was read before, after or in a window."""
    store = PostgresStore(database_dsn)
    try:
        first, second, third = making.enqueue(
            store, *(making.new_spec(number, ordering_key="k") for number in (1, 2, 3))
        )
        making.tell(store, second, TakeLease(second.due_at, "w1", first.id))
        ask(database_dsn, "update leasebook.jobs set has_waiter = false")
        rebuild(shadow)
        assert differing(database_dsn) == []
        shadow.begin()
        while not app_copy(shadow):
            pass
        shadow.complete()
        making.tell(store, third, TakeLease(third.due_at, "w1", second.id))
    finally:
        store.close()
    rebuild(shadow)
    assert differing(database_dsn) == []
    waited = ask(database_dsn, "select id from leasebook.jobs where has_waiter order by id")
    assert {row[0] for row in waited} == {first.id, second.id}


def app_copy(shadow: PostgresShadow) -> bool:
    with shadow.copying() as part:
        app._apply(part)  # pyright: ignore[reportPrivateUsage]
    return part.last


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("create view public.mine as select id from leasebook.jobs", "rule _RETURN on view mine"),
        (
            "create table public.mine (id uuid references leasebook.jobs)",
            "constraint mine_id_fkey on table mine",
        ),
        (
            "create trigger mine after insert on leasebook.jobs"
            " execute function leasebook.refuse_change()",
            "trigger mine on table leasebook.jobs",
        ),
        ("create policy mine on leasebook.jobs", "policy mine on table leasebook.jobs"),
        ("alter table leasebook.jobs add mine text", "column mine"),
        ("alter table leasebook.jobs add unique (id, label)", "constraint jobs_id_label_key"),
        ("create table public.mine (job leasebook.jobs)", "column job of table mine"),
        ("create statistics public.mine on queue, name from leasebook.jobs", "object mine"),
        ("create table leasebook.jobs_shadow (n int)", "a table of the name jobs_shadow"),
    ],
)
def test_what_hangs_on_the_table_is_named(
    database_dsn: str, shadow: PostgresShadow, made: str, told: str
) -> None:
    ask(database_dsn, made)
    with pytest.raises(RebuildRefused) as refused:
        rebuild(shadow)
    # The server leaves out the schema where it is on the search path of the role.
    assert told.replace("leasebook.", "") in str(refused.value).replace("leasebook.", "")


@pytest.mark.parametrize(
    "change",
    [
        "create index mine on leasebook.jobs (label)",
        "drop index leasebook.jobs_subject; create index jobs_subject on leasebook.jobs (subject)"
        " where subject is not null",
        "alter table leasebook.jobs alter label type varchar(900)",
    ],
)
def test_a_table_that_changes_meanwhile(
    database_dsn: str, shadow: PostgresShadow, ids: dict[str, UUID], change: str
) -> None:
    """The shadow follows, or is made anew."""
    rows = len(everything(database_dsn))
    shadow.begin()
    while not app_copy(shadow):
        pass
    shadow.complete()
    ask(database_dsn, change)
    definition = ask(database_dsn, DEFINITION)
    rebuild(shadow)
    assert ask(database_dsn, DEFINITION) == definition
    assert len(everything(database_dsn)) == rows
    assert ask(database_dsn, LEFT) == []


def test_who_is_in_the_way_is_told(
    database_dsn: str,
    shadow: PostgresShadow,
    ids: dict[str, UUID],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also one that reads in a snapshot of before, in which the new rows would not be there."""
    monkeypatch.setattr(app, "PAUSE_SECONDS", (0.0,))
    tried: list[str] = []
    for statement, told in (
        (b"select from leasebook.jobs for update", "held the table"),
        (
            b"set transaction isolation level repeatable read; select 1",
            "goes on in a snapshot of before",
        ),
    ):
        with psycopg.connect(database_dsn) as holder:
            holder.execute(statement)
            with pytest.raises(GateShut) as shut:
                rebuild(shadow, tried=lambda why, pause: tried.append(why))
            assert f"in 2 tries pid {holder.info.backend_pid} {told}" in str(shut.value)
            assert tried.pop() == f"pid {holder.info.backend_pid} {told}"
    assert check_schema(database_dsn) == (), "a shadow that is left harms nobody"
    assert shadow.begin() == ShadowPlace(True, rebuild(shadow).events)


def test_one_at_a_time_and_throwing_away(database_dsn: str, shadow: PostgresShadow) -> None:
    other = PostgresShadow(database_dsn)
    try:
        shadow.begin()
        with shadow.copying(), pytest.raises(RebuildElsewhere):
            rebuild(other)
        assert other.discard() is True
        assert other.discard() is False
        assert ask(database_dsn, LEFT) == []
        with pytest.raises(RebuildElsewhere), shadow.copying():
            pass
    finally:
        other.close()


def test_any_name_of_the_schema_will_do(database_dsn: str) -> None:
    name = """Jobs'"-x"""
    migrate(database_dsn, name)
    made = PostgresShadow(database_dsn, name)
    try:
        made.begin()
        made.complete()
        index = """create index mine on "Jobs'""-x".jobs (label)"""
        ask(database_dsn, index)
        made.complete()
        ask(database_dsn, """drop index "Jobs'""-x".mine""")
        assert rebuild(made).events == 0
        assert check_schema(database_dsn, name) == ()
    finally:
        made.close()


@pytest.mark.unchecked("a log that lacks a birth")
def test_a_stream_without_its_birth_is_refused(database_dsn: str, shadow: PostgresShadow) -> None:
    ask(
        database_dsn,
        "insert into leasebook.job_events (job_id, version, at, kind, lease)"
        " values (gen_random_uuid(), 3, now(), 'completed.v1', 2)",
    )
    with pytest.raises(RebuildRefused, match="does not begin with its birth"):
        rebuild(shadow)


@pytest.mark.unchecked("a log with one unique key twice")
def test_a_log_that_contradicts_itself_is_refused(
    database_dsn: str, shadow: PostgresShadow
) -> None:
    store = PostgresStore(database_dsn)
    try:
        making.enqueue(store, making.new_spec(1, unique_key="k"))
    finally:
        store.close()
    twice = (
        "insert into leasebook.job_events (job_id, version, at, kind, due_at, data)"
        " select gen_random_uuid(), version, at, kind, due_at, data from leasebook.job_events"
    )
    before = everything(database_dsn)
    ask(database_dsn, twice)
    with pytest.raises(RebuildRefused, match="two rows contradict each other: UniqueViolation"):
        rebuild(shadow)
    assert everything(database_dsn) == before


def test_a_shadow_that_somebody_wrote_to_is_refused(
    database_dsn: str, shadow: PostgresShadow, ids: dict[str, UUID]
) -> None:
    shadow.begin()
    while not app_copy(shadow):
        pass
    ask(database_dsn, "delete from leasebook.jobs_shadow where id = %s", [ids["due"]])
    with pytest.raises(RebuildRefused, match="throw it away with --discard"):
        rebuild(shadow)
    assert shadow.discard()
    rebuild(shadow)
    assert differing(database_dsn) == []


def test_a_log_of_elsewhere_gets_no_table(database_dsn: str, shadow: PostgresShadow) -> None:
    ask(
        database_dsn,
        """update leasebook.checkpoints set position = '{"system": "bundle"}'"""
        " where name = 'log home'",
    )
    with pytest.raises(NotALiveLog):
        rebuild(shadow)


@pytest.mark.acceptance("E11")
@pytest.mark.fault
@pytest.mark.slow
def test_killed_at_every_step_it_goes_on(database_dsn: str, ids: dict[str, UUID]) -> None:
    """Each process comes a step further than the one before, or as far: never is anything lost."""
    before = everything(database_dsn)
    search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    codes: list[int] = []
    for steps in (*range(1, 90, 4), 400):
        done = subprocess.run(
            [sys.executable, "-c", REBUILD_AND_DIE, database_dsn, str(steps)],
            env={**os.environ, "PYTHONPATH": search},
            timeout=60,
            capture_output=True,
            text=True,
        )
        assert everything(database_dsn) == before
        assert check_schema(database_dsn) == ()
        codes.append(done.returncode)
        assert codes[-1] in (0, -signal.SIGKILL), done.stderr
    assert codes[-1] == 0
    assert codes.count(-signal.SIGKILL) > 10
    assert ask(database_dsn, LEFT) == []
    assert differing(database_dsn) == []
