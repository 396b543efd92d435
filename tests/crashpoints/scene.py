"""A database, a worker that outlives everybody, and what both can be asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import make_conninfo

from leasebook.domain import Job, Recorded, State, fold
from leasebook.infra.app.ids import new_id
from leasebook.infra.ports import Store
from leasebook.infra.worker.answers import Report, Succeeded
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.tick import Ask, Ticker
from tests.conformance.making import worker
from tests.conformance.postgres_ground import PostgresGround

SURVIVOR = "survivor"
SETTINGS = WorkerSettings()
NAMES = ("fold", "work")
#: Interrupted jobs start one at a time; nothing here needs nearly as many ticks.
TICKS_MAX = 100

TRACES = """
select (select count(*) from leasebook.job_events), (select count(*) from leasebook.jobs),
    (select coalesce(sum(version), 0) from leasebook.jobs),
    (select count(*) from leasebook.group_inbox), (select count(*) from leasebook.request_keys),
    (select count(*) from leasebook.audit_log), (select count(*) from orders)
"""
UNFINISHED = """
select (select count(*) from leasebook.jobs where not held)
    + (select count(*) from leasebook.group_inbox)
"""

Streams = dict[UUID, list[Recorded]]


def ticker(store: Store, name: str) -> Ticker:
    """The ticks of a worker on the list."""
    return Ticker(store, name, ("default",), NAMES, SETTINGS, new_id)


class Scene:
    """Where every point of one operation is tried, one after the other."""

    def __init__(self, dsn: str) -> None:
        # The server itself stays up: what it has committed need not wait for its disk.
        self.dsn = dsn = make_conninfo(dsn, options="-c synchronous_commit=off")
        self.ground = PostgresGround(dsn, "leasebook")
        self.store = self.ground.store()
        self._admin = psycopg.connect(dsn, autocommit=True)
        self._admin.execute("create table orders (number bigint)")
        self.store.enroll(worker(SURVIVOR))
        self._survivor = ticker(self.store, SURVIVOR)

    def close(self) -> None:
        self._admin.close()
        self.ground.close()

    def traces(self) -> tuple[int, ...]:
        """How much there is of everything that a transaction of ours could leave."""
        return tuple(int(each) for each in self._row(TRACES))

    def terminate(self, backend: int) -> None:
        """Let an administrator end a session; it is gone when this returns."""
        # The server's own wait for it looks ten times a second.
        self._row("select pg_terminate_backend(%s)", backend)
        self.wait_gone(backend)

    def wait_gone(self, backend: int) -> None:
        """Wait until a session whose client has hung up is gone, and its locks with it."""
        ask = "select exists (select from pg_stat_activity where pid = %s)"
        while self._row(ask, backend)[0]:
            pass

    def finish(self, dead: Sequence[str]) -> list[Job]:
        """Let the survivor bury the dead and do all the work there is; the runs of that."""
        heart = Heart(self.store, SURVIVOR, SETTINGS)
        for each in dead:
            heart.bury(each)
        sweep(self.store, 1_000)
        runs: list[Job] = []
        reports: list[Report] = []
        for _ in range(TICKS_MAX):
            ask = Ask(reports, (), 10, collect=True, full_sweep=True)
            leased = self._survivor.tick(ask).leased
            runs += leased
            reports = [Report(job, Succeeded()) for job in leased]
            if not reports and not self._row(UNFINISHED)[0]:
                return runs
        raise AssertionError(f"after {TICKS_MAX} ticks there is still work")

    def streams(self) -> Streams:
        """The whole log."""
        streams: Streams = {}
        for each in self.ground.log():
            streams.setdefault(each.job_id, []).append(each)
        return streams

    def done(self) -> Counter[int]:
        """The numbers that jobs, and items of groups, were given, of all jobs that are done."""
        numbers: Counter[int] = Counter()
        for stream in self.streams().values():
            job = fold(each.event for each in stream)
            assert job is not None
            if job.state is State.DONE:
                numbers.update(_numbers(job))
        return numbers

    def _row(self, statement: str, *values: object) -> tuple[Any, ...]:
        row = self._admin.execute(statement.encode(), values or None).fetchone()
        assert row is not None
        return row


def _numbers(job: Job) -> list[int]:
    if job.spec.group is not None:
        return [int(item) for item in job.items]
    return list(json.loads(job.spec.args).values())
