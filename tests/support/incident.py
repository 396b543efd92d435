"""A small incident in a database, every second of it known: the same lives that pure tests tell.

``ada`` freezes at second 1 and is found dead at 10; ``grace`` comes at 11 and does everything.
"""

from __future__ import annotations

import json
from itertools import count

import psycopg

from leasebook.domain.commands import Command
from leasebook.domain.decide import change
from leasebook.domain.events import Event
from leasebook.infra.ports import Store
from leasebook.infra.postgres.store import PostgresStore
from leasebook.projections.replay.facts import AuditLine

from .facts import died, refused, started
from .lives import Life, at, item

FROM, UNTIL = at(0).isoformat(), at(60).isoformat()
WINDOW = ("--from", FROM, "--to", UNTIL)


class StoredLife(Life):
    """A life that a store keeps."""

    def __init__(self, store: Store) -> None:
        super().__init__(count(1))
        self._store = store

    def do(self, command: Command) -> tuple[Event, ...]:
        """Decide and append."""
        asked = change(self.job, command)
        with self._store.transaction() as transaction:
            assert not transaction.append([asked])
        self.job = asked.after
        return asked.events


def incident(dsn: str) -> None:
    """Five jobs: one ran twice, one waited, one is held, one is a group, one goes on waiting."""
    store = PostgresStore(dsn)
    both = ("default", "mail")
    try:
        life = StoredLife(store).enqueue(0, number=1, priority=9, unique_key="one")
        life.lease(1, "ada#1").expire(10).lease(12, "grace#2").complete(20)
        life = StoredLife(store).enqueue(2, number=2).lease(20.25, "grace#2")
        life.fail(21, "KeyError: 'x' in row 7")
        life = StoredLife(store).enqueue(5, number=3, queue="mail", retries=0)
        life.lease(30, "grace#2").fail(31, "KeyError: 'y' in row 9")
        life = StoredLife(store).open_group(item(1, 3), seconds=3, number=4)
        life.lease(40, "grace#2").complete(41)
        StoredLife(store).enqueue(50, number=5)
    finally:
        store.close()
    tell(
        dsn,
        started(-60, "ada#1", queues=both),
        died(10, "ada#1"),
        started(11, "grace#2", queues=both),
        refused(15.5, 1, lease=2, worker="ada#1"),
    )


def tell(dsn: str, *lines: AuditLine) -> None:
    """Write lines into the audit log, each at its time."""
    with psycopg.connect(dsn) as connection:
        for line in lines:
            connection.execute(
                "insert into leasebook.audit_log (at, kind, job_id, worker, detail)"
                " values (%s, %s, %s, %s, %s)",
                (line.at, line.kind, line.job_id, line.worker, json.dumps(dict(line.detail))),
            )
