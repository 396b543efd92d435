"""PostgreSQL under test, looked at through a connection and SQL of the tests' own."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import UUID

import psycopg
from attrs import evolve as replace
from psycopg import sql

from leasebook.domain.log import Recorded
from leasebook.domain.values import Outcome
from leasebook.infra.caller_ports import Order, Receipt
from leasebook.infra.codec import EventRow, decode
from leasebook.infra.documents import decode_effects, encode_spec
from leasebook.infra.ports import Store
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.projections.check import KeptRow
from leasebook.projections.row import SpecRow, StateRow
from leasebook.projections.status import Status, Summary

from .ground import WAIT_SECONDS_MAX, Accept

LOGS = ("job_events", "audit_log")
DOCUMENTS = {"args": "args::text", "items": "items::text[]", "effects": "effects::text"}


class PostgresGround:
    """Implements ``Ground`` on a fresh, migrated database."""

    def __init__(self, dsn: str, schema: str) -> None:
        self._dsn = dsn
        self._schema = schema
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._stores: list[Store] = []

    def close(self) -> None:
        self._close_stores()
        self._connection.close()

    def _close_stores(self) -> None:
        for store in self._stores:
            store.close()
        self._stores.clear()

    def reset(self) -> None:
        self._close_stores()
        with self._connection.transaction():
            for switch in ("disable trigger", "enable always trigger"):
                for table in LOGS:
                    name = f"{table}_append_only"
                    self._do(f"alter table {{schema}}.{table} {switch} {name}")
                if switch == "disable trigger":
                    tables = (*LOGS, "jobs", "group_inbox", "workers", "job_summaries")
                    self._do("truncate " + ", ".join(f"{{schema}}.{table}" for table in tables))

    def store(self) -> Store:
        store = PostgresStore(self._dsn, schema=self._schema)
        self._stores.append(store)
        return store

    @contextmanager
    def caller(self) -> Generator[Accept]:
        with psycopg.connect(self._dsn) as connection:

            def give(orders: Sequence[Order]) -> Sequence[Receipt]:
                receipts = accept(Schema(self._schema), connection, orders)
                assert isinstance(receipts, tuple)
                return receipts

            yield give

    def put_items(self, orders: Sequence[Order], at: datetime) -> None:
        for order in orders:
            spec = order.spec
            self._do(
                "insert into {schema}.group_inbox (at, queue, name, group_key, subject, item, spec)"
                " values (%s, %s, %s, %s, %s, %s, %s)",
                at, spec.queue, spec.name, spec.group_key, spec.subject, spec.args,
                encode_spec(replace(spec, args="null")),
            )  # fmt: skip

    def log(self) -> list[Recorded]:
        lines = self._do(
            "select job_id, version, event_id, xid, kind, at, due_at, lease, worker, data::text"
            " from {schema}.job_events order by job_id, version"
        )
        return [
            Recorded(job_id, version, event_id, xid, decode(job_id, EventRow(*columns)))
            for job_id, version, event_id, xid, *columns in lines
        ]

    def rows(self) -> dict[UUID, KeptRow]:
        names = SpecRow._fields + StateRow._fields
        columns = ", ".join(DOCUMENTS.get(name, name) for name in names)
        rows: dict[UUID, KeptRow] = {}
        for seq, marked, *values in self._do(
            f"select seq, has_waiter, {columns} from {{schema}}.jobs"
        ):
            cut = len(SpecRow._fields)
            state = StateRow(*values[cut:])
            effects = decode_effects(values[-1])
            state = state._replace(items=tuple(state.items or ()), effects=effects)
            rows[values[0]] = KeptRow(seq, (SpecRow(*values[:cut]), state), marked)
        return rows

    def inbox(self) -> int:
        return int(self._do("select count(*) from {schema}.group_inbox")[0][0])

    def audit(self) -> list[tuple[str, UUID | None, str | None]]:
        lines = self._do("select kind, job_id, worker from {schema}.audit_log order by id")
        return [(kind, job_id, worker) for kind, job_id, worker in lines]

    def summaries(self) -> list[Summary]:
        lines = self._do(
            "select job_id, status, outcome, name, owner, at"
            " from {schema}.job_summaries order by job_id"
        )
        return [
            Summary(job_id, Status(status), Outcome(outcome), *rest)
            for job_id, status, outcome, *rest in lines
        ]

    def prune(self, older_than: timedelta) -> int:
        return int(self._do("select pruned from {schema}.prune(%s, null, 1000)", older_than)[0][0])

    def somebody_waits(self) -> bool:
        question = (
            "select exists (select from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock')"
        )
        give_up = monotonic() + WAIT_SECONDS_MAX
        while not (waits := bool(self._do(question)[0][0])) and monotonic() < give_up:
            pass
        return waits

    def _do(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        statement = sql.SQL(text).format(schema=sql.Identifier(self._schema))  # pyright: ignore[reportArgumentType]
        cursor = self._connection.execute(statement, values)
        return [] if cursor.description is None else cursor.fetchall()
