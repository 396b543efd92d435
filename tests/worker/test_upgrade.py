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
from zipfile import ZipFile

import pytest

from tests.support.source import TOP
from tests.support.workers import WorkerProcess, eventually
from tests.support.yard import Yard
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
    assert {each.pid for each in yard.effects()} == {old.pid, new.pid}
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
        finder = earlier_worker(yard, earlier) if first == "new" else yard.worker()
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
    assert monotonic() - began < 20
    assert worker.stop() == 0  # What a session has read is counted when it ends.
    ((after,),) = yard.sql(read)
    # 20 jobs met at least 40 claims and looks; walking past the strangers each time reads 400,000.
    assert after - before < 12 * MANY
