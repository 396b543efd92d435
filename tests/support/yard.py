"""A database, the workers of one test on it, and what can be asked of both.

At the end of the test every worker is killed and its log kept.  (Every invariant is checked after
that, by the fixture that gave the database.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from attrs import frozen

from leasebook.domain.events import Event
from leasebook.domain.evolve import fold
from leasebook.domain.job import Job
from leasebook.infra.caller_ports import Receipt
from leasebook.infra.postgres.log import PostgresLog
from tests.support.workers import STARTED, WorkerProcess, eventually

APP = "tests.worker.app:book"
EFFECTS = """
create table if not exists effects (
    id bigint generated always as identity, job_id uuid, start bigint, pid bigint, note text,
    at timestamptz default clock_timestamp())
"""
#: Short paces, so that tests are quick; a test that wants others gives them after.  Nobody is taken
#: for dead by others: on a busy machine a heartbeat child may need seconds for its start.
PACES = ("--poll", "0.2", "--heartbeat", "0.25", "--dead-after", "60")
#: For the survivor, when a worker dies together with its heartbeat child.
SOON_DEAD = ("--dead-after", "1.0")


@frozen
class Effect:
    """One row that a handler wrote when it began."""

    job_id: UUID
    start: int
    pid: int
    note: str
    at: datetime


class Yard:
    """Everything that a test of real workers needs.  ``folder`` holds the gates."""

    def __init__(self, dsn: str, folder: Path, test: str) -> None:
        self.dsn = dsn
        self.folder = folder
        self.workers: list[WorkerProcess] = []
        self.may_alarm = False
        self._test = test
        self._log = PostgresLog(dsn)
        self.sql(EFFECTS)

    def start(self, *options: str, name: str = "", app: str = APP) -> WorkerProcess:
        """Start a worker without waiting for it."""
        name = name or "abcdefghijklmnopqrstuvwxyz"[len(self.workers) % 26]
        worker = WorkerProcess(self.dsn, self.folder, app, name, (*PACES, *options))
        self.workers.append(worker)
        return worker

    def worker(self, *options: str, name: str = "", app: str = APP) -> WorkerProcess:
        """Start a worker and wait until it has reported for work."""
        worker = self.start(*options, name=name, app=app)
        worker.tells(STARTED)
        return worker

    def beating(self, worker: WorkerProcess) -> None:
        """Wait until its heartbeat child beats, which starts after it: from then on it renews."""
        beats = "select beats > 0 from leasebook.workers where id = %s"
        eventually(lambda: self.sql(beats, worker.id) == [(True,)], f"{worker.name} beats")

    def open(self, gate: str) -> None:
        """Let the handlers go on that wait at this gate."""
        (self.folder / gate).touch()

    @contextmanager
    def caller(self) -> Generator[psycopg.Connection[Any]]:
        """A business transaction to enqueue in."""
        with psycopg.connect(self.dsn) as connection:
            yield connection

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Rows of a statement in a session of its own, so that no outage outlives its question."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def effects(self, receipt: Receipt | UUID | None = None) -> list[Effect]:
        """What handlers wrote, in order; of one job if it is given."""
        rows = self.sql("select job_id, start, pid, note, at from effects order by id")
        found = [Effect(*row) for row in rows]
        wanted = None if receipt is None else identity(receipt)
        return [each for each in found if wanted is None or each.job_id == wanted]

    def began(self, receipt: Receipt | UUID, times: int = 1) -> list[Effect]:
        """Wait until a handler of the job has begun so often."""
        what = f"job {identity(receipt)} starts {times} times"
        eventually(lambda: len(self.effects(receipt)) >= times, what)
        return self.effects(receipt)

    def events(self, receipt: Receipt | UUID) -> list[Event]:
        """The stream of a job."""
        return [each.event for each in self._log.stream(identity(receipt))]

    def kinds(self, receipt: Receipt | UUID) -> list[str]:
        """What happened to a job, in one word each."""
        return [each.kind for each in self.events(receipt)]

    def job(self, receipt: Receipt | UUID) -> Job:
        """A job as its stream tells of it."""
        job = fold(self.events(receipt))
        assert job is not None, "there is no such job"
        return job

    def over(self, receipt: Receipt | UUID) -> Job:
        """Wait for the end of a job."""

        def ended() -> Job | None:
            job = self.job(receipt)
            return job if job.state in ("done", "failed") else None

        found = eventually(ended, f"job {identity(receipt)} ends: {self.kinds(receipt)}")
        assert found is not None
        return found

    def all_over(self, receipts: Sequence[Receipt | UUID], seconds: float = 30.0) -> Counter[str]:
        """Wait until every job has ended; how many ended with which outcome."""
        ids = [identity(each) for each in receipts]

        def left() -> int:
            ((count,),) = self.sql(
                "select count(*) from leasebook.job_events where job_id = any(%s)"
                " and kind in ('completed.v1', 'failed.v1')",
                ids,
            )
            return len(ids) - int(count)

        eventually(lambda: left() == 0, f"{len(ids)} jobs end", seconds)
        return Counter(str(self.job(each).outcome) for each in ids)

    def rows(self) -> int:
        """How many rows the claim table has."""
        return int(self.sql("select count(*) from leasebook.jobs")[0][0])

    def audit(self, kind: str) -> list[tuple[UUID | None, str | None, Any]]:
        """Lines of the audit log of one kind: job, worker, detail."""
        rows = self.sql(
            "select job_id, worker, detail from leasebook.audit_log where kind = %s order by id",
            kind,
        )
        return [(job_id, worker, detail) for job_id, worker, detail in rows]

    def logged(self, event: str, **facts: object) -> int:
        """How many lines of this kind all workers together wrote."""
        return sum(len(worker.told(event, **facts)) for worker in self.workers)

    def finish(self) -> None:
        """Kill, keep the logs, and see that no worker was at a loss."""
        for worker in self.workers:
            worker.finish(self._test, (self.dsn, str(self.folder)))
        self._log.close()
        if not self.may_alarm:
            alarms = [line for worker in self.workers for line in worker.alarms()]
            assert not alarms, "\n".join(alarms)


def identity(receipt: Receipt | UUID) -> UUID:
    """The id of a job, which an item of a group has not."""
    job_id = receipt if isinstance(receipt, UUID) else receipt.id
    assert job_id is not None, "an item has no job id"
    return job_id
