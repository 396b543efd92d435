"""Two releases and two applications side by side on one database.

A worker leaves alone what it does not know, names and row formats, says so once, and is not held
up by it.  The earlier release is a wheel that was built then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic
from uuid import UUID
from zipfile import ZipFile

import pytest

from leasebook import Book, Group, Run
from leasebook.domain.commands import Enqueue
from leasebook.domain.decide import change
from leasebook.domain.job import JobSpec
from leasebook.infra.app.ids import new_id
from leasebook.infra.postgres.schema.check import check_schema
from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.store import PostgresStore
from tests.support.source import TOP
from tests.support.workers import WorkerProcess, eventually
from tests.support.yard import EFFECTS, SOON_DEAD, Yard
from tests.worker import app, other_app

WHEEL = TOP / "tests" / "fixtures" / "leasebook-0.1.0-py3-none-any.whl"
ALONE = "jobs left alone"
MANY = 10_000

PRODUCE = """
import os, psycopg
from tests.worker import app
import leasebook
assert "earlier" in leasebook.__file__, leasebook.__file__
with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as connection:
    app.quick.enqueue_many(connection, range(50))
    for n in range(10):
        app.stream.enqueue(connection, n, group_key=str(n % 2))
"""


@pytest.fixture(scope="session")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder from which the earlier release is imported."""
    folder = tmp_path_factory.mktemp("earlier")
    with ZipFile(WHEEL) as wheel:
        wheel.extractall(folder)
    return folder


def earlier_worker(yard: Yard, release: Path, *options: str) -> WorkerProcess:
    """A worker of the earlier release."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(release))
        return yard.worker(*options, name="earlier")


@pytest.mark.acceptance("A12")
def test_two_releases_share_the_work(yard: Yard, earlier: Path) -> None:
    """Producers and workers of both; every job is done once, whoever wrote it."""
    old = earlier_worker(yard, earlier, "--concurrency", "3")
    new = yard.worker("--concurrency", "3")
    done = subprocess.run(
        [sys.executable, "-c", PRODUCE],
        env={
            **os.environ,
            "LEASEBOOK_DSN": yard.dsn,
            "PYTHONPATH": os.pathsep.join([str(TOP), str(earlier)]),
        },
        capture_output=True,
        text=True,
        cwd=yard.folder,
    )
    assert done.returncode == 0, done.stderr
    with yard.caller() as caller:
        mine = app.quick.enqueue_many(caller, range(50))
        failing = app.failing.enqueue(caller, "as it must")
        for n in range(10):
            app.stream.enqueue(caller, n, group_key=str(n % 2))
    assert yard.all_over(mine) == {"done": 50}
    assert yard.over(failing).outcome == "exhausted"
    eventually(lambda: yard.rows() == 1, "only the held job is left")
    notes = [each.note for each in yard.effects() if each.note]
    items = sorted(int(number) for note in notes for number in note.split(","))
    assert items == sorted([*range(10), *range(10)])

    def both_have_worked() -> bool:
        """On a busy machine one of them may have been quicker with all there was."""
        with yard.caller() as caller:
            app.quick.enqueue_many(caller, range(5))
        return {each.pid for each in yard.effects()} == {old.pid, new.pid}

    eventually(both_have_worked, "each of them has run something")
    assert old.stop() == new.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A12")
def test_each_release_picks_up_what_the_other_lost(yard: Yard, earlier: Path) -> None:
    for first in ("new", "earlier"):
        with yard.caller() as caller:
            job = app.gated.enqueue(caller, first)
        dying = yard.worker() if first == "new" else earlier_worker(yard, earlier)
        yard.began(job)
        dying.kill(heart=True)
        if first == "new":
            finder = earlier_worker(yard, earlier, *SOON_DEAD)
        else:
            finder = yard.worker(*SOON_DEAD)
        yard.open(first)
        assert yard.over(job).outcome == "done"
        assert "lease_expired" in yard.kinds(job)
        assert finder.stop() == 0


@pytest.mark.acceptance("A12")
def test_a_newer_row_format_is_left_alone_and_said_once(yard: Yard, earlier: Path) -> None:
    with yard.caller() as caller:
        newer = app.quick.enqueue_many(caller, range(20))
    yard.sql("update leasebook.jobs set format = 32000")
    old, new = earlier_worker(yard, earlier), yard.worker()
    with yard.caller() as caller:
        known = app.quick.enqueue(caller)
    assert yard.over(known).outcome == "done"
    told = new.tells(ALONE)
    assert told["reason"] == "row format 32000 is of a newer release"
    with yard.caller() as caller:
        later = app.quick.enqueue(caller)
    assert yard.over(later).outcome == "done"
    assert len(new.told(ALONE)) == 1
    assert yard.rows() == 20
    yard.sql("update leasebook.jobs set format = 1")
    assert yard.all_over(newer) == {"done": 20}
    assert old.stop() == new.stop() == 0


def newer_kinds(yard: Yard) -> dict[str, UUID]:
    """Jobs that release 0.1 knows by name and does not understand, due before all others."""
    book = Book(yard.dsn, notify=False)
    book.job(name="quick", on_expired="abort")(once)
    book.job(name="stream", on_expired="abort", group=Group(window=0, max_hold=1))(all_once)
    with yard.caller() as caller:
        receipt = book.enqueue(caller, "quick", {"n": 1}, unique_key="once")
        aborts = book.enqueue(caller, "quick", {"n": 2})
        book.enqueue(caller, "stream", 7, group_key="k")
    store = PostgresStore(yard.dsn)
    with store.transaction() as tx:
        spec = JobSpec(new_id(), "quick", '{"n":3}', tx.at, ordering_key="k")
        assert not tx.append([change(None, Enqueue(tx.at, spec))])
    store.close()
    book.close()
    assert receipt.id is not None
    assert aborts.id is not None
    return {"with a key": receipt.id, "aborts": aborts.id, "ordered": spec.id}


async def once(run: Run, n: int) -> None: ...


async def all_once(run: Run, items: list[int]) -> None: ...


@pytest.mark.acceptance("A12", "P06")
def test_the_earlier_release_leaves_jobs_alone_that_abort_or_have_an_order(
    yard: Yard, earlier: Path
) -> None:
    """It would run them again, or before their turn; the newer one takes them."""
    newer = newer_kinds(yard)
    assert yard.sql("select format, count(*) from leasebook.jobs group by 1") == [(2, 3)]
    assert yard.sql("select format from leasebook.group_inbox") == [(2,)]
    old = earlier_worker(yard, earlier)
    told = old.tells(ALONE, name="quick")
    assert told["reason"] == "row format 2 is of a newer release"
    with yard.caller() as caller:
        known = app.quick.enqueue_many(caller, range(20))
        items = [app.stream.enqueue(caller, n, group_key="other") for n in range(3)]
    assert yard.all_over(known) == {"done": 20}
    eventually(lambda: any(each.note == "0,1,2" for each in yard.effects()), "its own group runs")
    assert len(items) == 3
    for job_id in newer.values():
        assert yard.kinds(job_id) == ["enqueued"]
    assert yard.sql("select item::text from leasebook.group_inbox") == [("7",)]
    new = yard.worker()
    assert yard.all_over(list(newer.values())) == {"done": 3}
    eventually(lambda: any(each.note == "7" for each in yard.effects()), "the group runs")
    assert {each.pid for each in yard.effects(newer["aborts"])} == {new.pid}
    assert old.stop() == new.stop() == 0


@pytest.mark.fault
@pytest.mark.acceptance("A12", "P06")
def test_the_earlier_release_ends_no_lease_that_it_does_not_understand(
    yard: Yard, earlier: Path
) -> None:
    """A lease of a type that aborts would be made a retry by it."""
    book = Book(yard.dsn, notify=False)
    book.job(name="short_lease", on_expired="abort", lease=1.2)(gate_once)
    with yard.caller() as caller:
        receipt = book.enqueue(caller, "short_lease", {"gate": "never"})
    book.close()
    first = yard.worker("--no-death-detection")
    yard.began(receipt)
    first.kill(heart=True)
    old = earlier_worker(yard, earlier, "--no-death-detection")
    overdue = "select due_at < clock_timestamp() from leasebook.jobs where id = %s"
    eventually(lambda: yard.sql(overdue, receipt.id) == [(True,)], "its lease is over")
    with yard.caller() as caller:
        known = app.short_lease.enqueue(caller, "go")
    yard.open("go")
    assert yard.over(known).state == "done"
    assert yard.kinds(receipt)[-1] == "leased"
    yard.worker("--no-death-detection")
    assert yard.over(receipt).outcome == "aborted"
    assert len(yard.effects(receipt)) == 1
    assert old.stop() == 0


async def gate_once(run: Run, gate: str) -> None: ...


@pytest.mark.acceptance("A12")
@pytest.mark.case("C58")
def test_the_schema_of_the_earlier_release_is_upgraded_beside_its_workers(
    yard: Yard, earlier: Path
) -> None:
    yard.sql("drop schema leasebook cascade")
    command = [sys.executable, "-m", "leasebook.infra.cli", "migrate", "--dsn", yard.dsn]
    search = os.pathsep.join([str(earlier), str(TOP)])
    made = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": search}, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert yard.sql("select version_num from leasebook.leasebook_version") == [("0002",)]
    yard.sql(EFFECTS)
    old = earlier_worker(yard, earlier)
    produced = subprocess.run(
        [sys.executable, "-c", PRODUCE],
        env={**os.environ, "LEASEBOOK_DSN": yard.dsn, "PYTHONPATH": search},
        capture_output=True,
        text=True,
        cwd=yard.folder,
    )
    assert produced.returncode == 0, produced.stderr
    migrate(yard.dsn)
    assert check_schema(yard.dsn) == ()
    new = yard.worker()
    with yard.caller() as caller:
        mine = app.quick.enqueue_many(caller, range(50))
    assert yard.all_over(mine) == {"done": 50}
    eventually(lambda: yard.rows() == 0, "what the earlier release wrote is done too")
    assert old.stop() == new.stop() == 0
    assert not old.told("store unavailable")


@pytest.mark.acceptance("A12")
def test_two_applications_share_a_queue(yard: Yard) -> None:
    with yard.caller() as caller:
        foreign = other_app.foreign.enqueue_many(caller, range(30))
        outlandish = other_app.outlandish.enqueue(caller)
        known = app.quick.enqueue_many(caller, range(30))
    worker = yard.worker("--queue", "default")
    assert yard.all_over(known) == {"done": 30}
    worker.tells(ALONE, name="foreign")
    worker.tells(ALONE, name="outlandish")
    assert len(worker.told(ALONE)) == 2
    assert yard.rows() == 31
    other = yard.worker(app="tests.worker.other_app:book", name="other")
    assert yard.all_over([*foreign, outlandish]) == {"done": 31}
    assert len(worker.told(ALONE)) == 2
    assert worker.stop() == other.stop() == 0


@pytest.mark.acceptance("A12")
def test_ten_thousand_strangers_hold_nobody_up(yard: Yard) -> None:
    """They are due before everything that is ours, and are not walked past time and again."""
    with yard.caller() as caller:
        other_app.foreign.enqueue_many(caller, range(MANY))
        known = app.quick.enqueue_many(caller, range(100))
    worker = yard.worker()
    assert yard.all_over(known) == {"done": 100}
    worker.tells(ALONE, name="foreign")
    read = "select idx_tup_fetch from pg_stat_user_tables where relname = 'jobs'"
    ((before,),) = yard.sql(read)
    began = monotonic()
    for n in range(20):
        with yard.caller() as caller:
            job = app.quick.enqueue(caller, n)
        assert yard.over(job).outcome == "done"
    took = monotonic() - began
    assert worker.stop() == 0  # What a session has read is counted when it ends.
    ((after,),) = yard.sql(read)
    # 20 jobs met at least 40 claims and looks; walking past the strangers each time reads 400,000.
    # (Every few seconds a worker does walk past them.)
    assert after - before < (12 + took) * MANY
