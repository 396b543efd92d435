"""The database is there and refuses: each kind of trouble ends by itself, and spends nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest
from attrs import define
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from leasebook.infra.caller_ports import Receipt
from tests.support.workers import WorkerProcess, eventually, running
from tests.support.yard import Yard
from tests.worker import app

pytestmark = pytest.mark.fault
#: The sessions of workers, but not those of the test.
ENDED = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where datname = current_database()
   and application_name in ('leasebook worker', 'leasebook heartbeat')
"""


@define
class Ward:
    """A worker that has a role of its own, from which rights can be taken."""

    owner: str
    role: str
    worker: WorkerProcess

    def say(self, *statements: str) -> None:
        """Run statements as the owner, outside any setting of the database."""
        options = "-c default_transaction_read_only=off"
        with psycopg.connect(self.owner, autocommit=True, options=options) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @property
    def database(self) -> str:
        """The quoted name of the database."""
        return f'"{conninfo_to_dict(self.owner)["dbname"]}"'


@pytest.fixture
def ward(yard: Yard) -> Iterator[Ward]:
    """Its worker runs."""
    role = f"lb_ward_{secrets.token_hex(4)}"
    owner = yard.dsn
    yard.sql(f"create role {role} login password 'ward'")
    # Where the owner's session, and so the yard, has made the table of effects.
    yard.sql(f"alter role {role} set search_path = leasebook, public")
    for grant in (
        "usage on schema leasebook",
        "all on all tables in schema leasebook",
        "all on all sequences in schema leasebook",
        "all on effects",
    ):
        yard.sql(f"grant {grant} to {role}")
    yard.dsn = make_conninfo(owner, user=role, password="ward")
    worker = yard.worker("--no-death-detection")
    yard.dsn = owner
    yield Ward(owner, role, worker)
    worker.process.kill()
    worker.process.wait()
    eventually(lambda: not running(worker.heart), "its heartbeat child has gone")
    yard.sql(f"drop owned by {role}")
    yard.sql(f"drop role {role}")


@contextmanager
def read_only(ward: Ward) -> Generator[None]:
    """As after a fail-over: sessions end, and those that follow cannot write."""
    ward.say(f"alter database {ward.database} set default_transaction_read_only = on", ENDED)
    yield
    ward.say(f"alter database {ward.database} reset default_transaction_read_only", ENDED)


@contextmanager
def missing_grant(ward: Ward) -> Generator[None]:
    """Somebody takes the right to write to the log."""
    ward.say(f"revoke insert on leasebook.job_events from {ward.role}")
    yield
    ward.say(f"grant insert on leasebook.job_events to {ward.role}")


@contextmanager
def terminated(ward: Ward) -> Generator[None]:
    """Every session ends, again and again."""
    ward.say(*[ENDED] * 5)
    yield
    ward.say(ENDED)


@contextmanager
def no_connection(ward: Ward) -> Generator[None]:
    """Others have taken all connections."""
    ward.say(f"alter role {ward.role} connection limit 0", ENDED)
    yield
    ward.say(f"alter role {ward.role} connection limit -1")


@contextmanager
def no_memory(ward: Ward) -> Generator[None]:
    """The server has no memory for what is written."""
    ward.say(
        "create function public.starve() returns trigger language plpgsql as"
        " $$ begin raise 'out of memory' using errcode = 'out_of_memory'; end $$",
        "create trigger starve before insert on leasebook.job_events"
        " for each statement execute function public.starve()",
    )
    yield
    ward.say("drop function public.starve() cascade")


@pytest.mark.acceptance("Q07")
@pytest.mark.parametrize(
    "trouble", [read_only, missing_grant, terminated, no_connection, no_memory]
)
def test_q07_trouble_ends_by_itself_and_spends_no_attempt(
    yard: Yard, ward: Ward, trouble: Callable[[Ward], AbstractContextManager[None]]
) -> None:
    worker = ward.worker
    with yard.caller() as caller:
        at_work = app.gated.enqueue(caller, "go")
    yard.began(at_work)
    with trouble(ward):
        # Its end is something to write.
        yard.open("go")
        if trouble is not terminated:
            worker.tells("store unavailable")
    after = enqueue_writable(yard)
    assert yard.all_over([at_work, *after]) == {"done": 6}
    for each in (at_work, *after):
        assert (yard.job(each).starts, yard.job(each).attempts) == (1, 0)
    if trouble is not terminated:
        worker.tells("store available again")
    assert len(worker.told("store unavailable")) <= 2
    assert not worker.told("store still unavailable")
    assert not worker.told("tick failed")
    assert worker.stop() == 0


def enqueue_writable(yard: Yard) -> list[Receipt]:
    """More jobs, once a caller can write again."""
    receipts: list[Receipt] = []

    def wrote() -> bool:
        try:
            with yard.caller() as caller:
                receipts.extend(app.quick.enqueue(caller, n) for n in range(5))
        except psycopg.Error:
            receipts.clear()
        return bool(receipts)

    eventually(wrote, "a caller can write")
    return receipts
