"""PostgreSQL goes away and comes back, and no work is lost or done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest

from leasebook.domain import change
from leasebook.domain.commands import TakeLease
from leasebook.infra.ports import Claim, StoreUnavailable
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.server import embedded_server
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.postgres.transaction import PostgresTransaction
from leasebook.infra.worker.expiry import sweep
from tests.plugins.database import assert_lawful
from tests.support.servers import Outside, answers
from tests.support.workers import DEADLINE_SECONDS, eventually
from tests.support.yard import Yard
from tests.worker import app

pytestmark = pytest.mark.fault
OVERDUE = 250


class Server:
    """A PostgreSQL of this test's own, that can be killed; its keeper starts it again."""

    def __init__(self, dsn: str, outside: Outside) -> None:
        self.dsn = dsn
        self._outside = outside

    def crash(self) -> None:
        """End it at once, as an immediate stop does, and wait until it answers again."""
        self.down()
        self.up()

    def down(self) -> None:
        """End it at once, and keep it down."""
        os.kill(self._outside.keeper_pid, signal.SIGSTOP)
        os.kill(self._outside.postmaster_pid, signal.SIGQUIT)
        eventually(lambda: not self._outside.running, "the server is down")

    def up(self) -> None:
        """Let its keeper start it again."""
        os.kill(self._outside.keeper_pid, signal.SIGCONT)
        eventually(lambda: answers(self.dsn), "the server answers")


class HaltingStore(PostgresStore):
    """Calls ``halt`` before each commit."""

    halt: Callable[[], None]

    @contextmanager
    def transaction(self) -> Generator[PostgresTransaction]:
        with super().transaction() as tx:
            yield tx
            self.halt()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    outside = Outside(tmp_path / "data")
    settings = {"fsync": "off", "max_connections": "60"}
    with embedded_server(outside.data_dir, settings=settings, linger_seconds=0) as lease:
        migrate(lease.dsn)
        made = Server(lease.dsn, outside)
        yield made
        made.up()
        assert_lawful(lease.dsn)
    outside.wait_gone()
    outside.clean()


@pytest.fixture
def own_yard(
    server: Server, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Yard]:
    """A yard on a server that the test may crash."""
    monkeypatch.setenv("LEASEBOOK_DSN", server.dsn)
    made = Yard(server.dsn, tmp_path, request.node.name)
    yield made
    made.finish()


@pytest.mark.acceptance("Q07")
@pytest.mark.case("C13")
@pytest.mark.parametrize("handler", ["gated", "gated_thread"])
def test_c13_a_restart_during_a_handler_costs_no_start(
    own_yard: Yard, server: Server, handler: str
) -> None:
    yard = own_yard
    with yard.caller() as caller:
        receipt = app.book.enqueue(caller, handler, {"gate": "go"})
    worker = yard.worker()
    yard.began(receipt)
    server.crash()
    yard.open("go")
    job = yard.over(receipt)
    assert (job.state, job.starts, job.attempts) == ("done", 1, 0)
    assert len(yard.effects(receipt)) == 1
    with yard.caller() as caller:
        more = [app.quick.enqueue(caller, n) for n in range(5)]
    assert yard.all_over(more) == {"done": 5}
    # One line when it went, one when it came back, whatever was tried in between.
    assert len(worker.told("store unavailable")) <= 2
    assert worker.stop() == 0


@pytest.mark.case("C13")
def test_c13_what_finishes_while_the_database_is_away_is_recorded_later(
    own_yard: Yard, server: Server
) -> None:
    yard = own_yard
    with yard.caller() as caller:
        receipts = [app.gated.enqueue(caller, "go") for _ in range(5)]
    worker = yard.worker()
    for each in receipts:
        yard.began(each)
    server.down()
    yard.open("go")
    worker.tells("store unavailable")
    server.up()
    assert yard.all_over(receipts) == {"done": 5}
    assert [yard.job(each).starts for each in receipts] == [1] * 5
    worker.tells("store available again")
    assert len(worker.told("store unavailable")) <= 2
    assert worker.stop() == 0


def test_a_stop_while_the_database_is_away_ends_and_the_work_is_found_again(
    own_yard: Yard, server: Server
) -> None:
    yard = own_yard
    with yard.caller() as caller:
        receipt = app.gated.enqueue(caller, "go")
    worker = yard.worker("--grace", "1")
    yard.began(receipt)
    server.down()
    worker.tells("store unavailable")
    worker.signal(signal.SIGTERM)
    # Grace, five seconds to cancel and five to settle: nobody can be told how the run ended.
    assert worker.ended() == 3
    worker.tells("worker stopped with unsettled runs")
    server.up()
    # Its heartbeat child stayed behind for this, and ends the lease.
    eventually(lambda: yard.kinds(receipt)[-1] == "lease_expired", "the lease is ended")
    yard.open("go")
    yard.worker()
    assert yard.over(receipt).state == "done"


def test_an_idle_worker_stops_soon_while_the_database_is_away(
    own_yard: Yard, server: Server
) -> None:
    worker = own_yard.worker()
    server.down()
    worker.tells("store unavailable")
    worker.signal(signal.SIGTERM)
    worker.ended()


@pytest.mark.case("C11")
def test_c11_a_restart_in_the_middle_of_a_sweep_drops_nothing(
    own_yard: Yard, server: Server
) -> None:
    """The server is killed under a sweep before its commit, and again while two workers recover."""
    yard = own_yard
    ids = overdue_jobs(yard)
    held, go_on = Event(), Event()
    store = HaltingStore(server.dsn)

    def halt() -> None:
        held.set()
        assert go_on.wait(DEADLINE_SECONDS)

    store.halt = halt
    with ThreadPoolExecutor(1) as pool:
        broken = pool.submit(sweep, store, 1000)
        assert held.wait(DEADLINE_SECONDS)
        server.crash()
        go_on.set()
        with pytest.raises(StoreUnavailable):
            broken.result(DEADLINE_SECONDS)
    store.close()
    assert expired(yard) == 0
    for _ in range(2):
        yard.worker("--no-death-detection", "--concurrency", "20")
    eventually(lambda: expired(yard) > 0, "a sweep has gone through")
    server.crash()
    assert yard.all_over(ids, 60) == {"done": OVERDUE}
    for each in ids:
        assert yard.kinds(each).count("lease_expired") == 1
        assert yard.job(each).starts == 2


def expired(yard: Yard) -> int:
    """How many leases have ended by time."""
    question = "select count(*) from leasebook.job_events where kind = 'lease_expired.v1'"
    return int(yard.sql(question)[0][0])


def overdue_jobs(yard: Yard) -> list[UUID]:
    """Jobs whose short leases have ended, and whose worker is gone."""
    with yard.caller() as caller:
        app.brief.enqueue_many(caller, range(OVERDUE))
    store = PostgresStore(yard.dsn)
    with store.transaction() as tx:
        jobs = tx.claim(Claim(("default",), ("brief",), OVERDUE, 0))
        assert len(jobs) == OVERDUE
        leased_at = tx.at
        tx.append([change(job, TakeLease(leased_at, "gone")) for job in jobs])
    end = leased_at + timedelta(seconds=jobs[0].spec.policy.lease)
    eventually(lambda: store.outlook(["default"], ["brief"]).at > end, "the leases have ended")
    store.close()
    return [job.id for job in jobs]
