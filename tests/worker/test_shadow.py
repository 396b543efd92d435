"""The claim table is made anew again and again while workers and producers go on.

`make rehearse` runs this beside 1,000,000 more jobs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from time import monotonic
from typing import Any
from uuid import UUID

import pytest

from leasebook.domain.events import Completed
from leasebook.infra.app.rebuild import verify
from leasebook.infra.app.shadow import Rebuilt, rebuild
from leasebook.infra.caller_ports import Receipt
from leasebook.infra.postgres.claim_table import PostgresClaimTable
from leasebook.infra.postgres.schema.check import check_schema
from leasebook.infra.postgres.shadow import PostgresShadow
from tests.support.yard import Yard, identity
from tests.worker.app import quick
from tests.worker.maintenance_app import built_in

APP = "tests.worker.maintenance_app:book"
ROWS = int(os.environ.get("LEASEBOOK_TEST_REBUILD_ROWS", "2000"))
CHUNK_EVENTS = max(500, min(5_000, ROWS // 100))
#: After how many chunks each rebuild is killed; -1: with its indexes, a window half applied.
KILLS = (1, -1, 4, -1, 2, -1)[: 6 if ROWS < 100_000 else 2]
#: With two workers sixteen writers, as in the case that was reported.
PRODUCERS = 14
PACE_SECONDS = 0.2
#: Whether anything is written in the last instant before a swap is chance.
TRIES_MAX = 20
SECONDS = 60.0 + ROWS / 1_000

#: Jobs that wait for tomorrow.
FILL = """
with logged as (
    insert into leasebook.job_events (job_id, version, at, kind, due_at, data)
    select gen_random_uuid(), 1, moment.at, 'enqueued.v1', moment.at + interval '1 day', %s
      from generate_series(1, %s), (select now() as at) as moment
    returning job_id, event_id, at, due_at
)
insert into leasebook.jobs (id, seq, queue, priority, name, args, enqueued_at, retries, timeout,
       lease_seconds, on_exhausted, version, state, due_at, at)
select job_id, event_id, 'default', 5, 'quick', '{"n":1}', at, 3, 300, 60, 'hold', 1, 'queued',
       due_at, at
  from logged
"""

#: A rebuild that is killed after some chunks, or when it stands in the gate.
REBUILD_AND_DIE = """
import os, signal, sys
from leasebook.infra.app.shadow import rebuild
from leasebook.infra.postgres import shadow as module
left = int(sys.argv[2])
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
def told(events, total):
    global left
    left -= 1
    if left == 0:
        die()
if left < 0:
    moved = module.Place.moved
    module.Place.moved = lambda place, here, events, rows: (
        die() if place.waiters and events else moved(place, here, events, rows))
rebuild(module.PostgresShadow(sys.argv[1], chunk_events=int(sys.argv[3])), told)
"""


@pytest.mark.acceptance("E11")
@pytest.mark.case("C56")
@pytest.mark.fault
@pytest.mark.slow
@pytest.mark.timeout(300 + ROWS // 400)
def test_nothing_is_lost_or_done_twice_while_the_table_is_swapped(yard: Yard) -> None:
    """Workers and producers keep their sessions, and the statements they have prepared."""
    _fill(yard)
    for _ in range(2):
        yard.worker("--concurrency", "4")
    stop, waits = Event(), list[float]()
    with ThreadPoolExecutor(PRODUCERS) as threads, closing(PostgresShadow(yard.dsn)) as shadow:
        producers = [threads.submit(_produce, yard, stop, waits) for _ in range(PRODUCERS)]
        try:
            for when in KILLS:
                _killed(yard.dsn, when)
                done, gate = _timed(shadow, waits)
                longest = max(waits[gate:], default=0.0)
                print(
                    f"{done.events} events, {done.tries} tries, gate {done.gate_seconds * 1000:.0f}"
                    f" ms, longest enqueue beside it {longest * 1000:.0f} ms"
                )
                assert check_schema(yard.dsn) == ()
        finally:
            stop.set()
        receipts = [each for future in producers for each in future.result()]
    assert len(receipts) > len(KILLS) * PRODUCERS, "producers went on"
    outcomes = yard.all_over(receipts, SECONDS)
    assert outcomes == Counter({"done": len(receipts)})
    assert Counter(each.job_id for each in yard.effects()) == Counter(receipts), "each began once"
    assert yard.rows() == ROWS
    with closing(PostgresClaimTable(yard.dsn)) as table:
        assert list(verify(table)) == []
    pids = {each.pid for each in yard.effects()}
    assert len(pids) == len(yard.workers), "no worker was replaced"


def _fill(yard: Yard) -> None:
    document = {
        "name": "quick",
        "queue": "default",
        "priority": 5,
        "retries": 3,
        "timeout": 300,
        "lease": 60,
        "on_exhausted": "hold",
        "args": {"n": 1},
    }
    yard.sql(FILL, json.dumps(document, separators=(",", ":")), ROWS)


def _produce(yard: Yard, stop: Event, waits: list[float]) -> list[UUID]:
    """One job in each transaction, all on one connection."""
    made: list[UUID] = []
    with yard.caller() as caller:
        while not stop.wait(PACE_SECONDS):
            began = monotonic()
            made.append(identity(quick.enqueue(caller, len(made))))
            caller.commit()
            waits.append(monotonic() - began)
    return made


def _timed(shadow: PostgresShadow, waits: list[float]) -> tuple[Rebuilt, int]:
    """A rebuild, and how many enqueues there were before the first window after its indexes."""
    counts: list[int] = []
    done = rebuild(shadow, lambda events, total: counts.append(len(waits)))
    return done, counts[-2]


def _killed(dsn: str, when: int) -> None:
    """A rebuild that does not come to its end.

    One that was to die over an event behind the gate, and met none there, is followed by another.
    """
    search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    command = [sys.executable, "-c", REBUILD_AND_DIE, dsn, str(when), str(CHUNK_EVENTS)]
    environment = {**os.environ, "PYTHONPATH": search}
    code, tries = 0, 0
    while code == 0 and tries < TRIES_MAX:
        code = subprocess.run(command, env=environment, timeout=SECONDS).returncode
        tries += 1
    assert code == -signal.SIGKILL


@pytest.mark.acceptance("E11")
@pytest.mark.slow
def test_verify_repair_and_rebuild_as_jobs(yard: Yard) -> None:
    """Ordinary jobs, whose results say what was found; the rebuild's own row goes along."""
    with yard.caller() as caller:
        lost = quick.enqueue(caller, 1)
    yard.sql("delete from leasebook.jobs")
    with yard.caller() as caller:
        first = built_in.verify.enqueue(caller)
        # (One after another; a job that lost its row cannot be waited for.)
        second = built_in.repair.enqueue(caller, after=first)
        third = built_in.rebuild.enqueue(caller, after=second)
        last = built_in.verify.enqueue(caller, after=third)
    yard.worker(app=APP)

    def result(receipt: Receipt) -> dict[str, Any]:
        yard.over(receipt)
        (completed,) = (each for each in yard.events(receipt) if isinstance(each, Completed))
        assert completed.result is not None
        document: dict[str, Any] = json.loads(completed.result)
        return document

    found = result(first)
    assert (found["rows"], found["left"]) == (1, 1)
    assert found["shown"][0]["job_id"] == str(lost.id)
    assert (result(second)["rows"], result(second)["left"]) == (1, 0)
    assert result(third)["tries"] >= 1
    assert result(last)["rows"] == 0
    assert yard.over(lost).outcome == "done"
    assert len(yard.audit("table_rebuilt")) == 1
