"""Taking over the jobs that wait in somebody's queue table.

Every row that is not over gets exactly one disposition: imported, already imported, over by now,
busy (another session holds it), or set aside for a person, with the reason and what to do.  The
old table is never changed; what was taken is remembered beside the jobs, in the same transaction,
so that a run may be broken off and repeated at will.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from attrs import define, field, frozen

from ...domain.errors import LeasebookError
from ..caller_ports import Order
from ..documents import dumps
from ..import_ports import Listed, Noted, OldRow, OldTable
from ..ports import DataRefused
from .mapping import TableMap, check_map
from .old_rows import Ambiguous, Interpreter, SetAside
from .registry import JobType

BATCH_ROWS_MAX = 1_000


@define
class ImportReport:
    """What became of every row.

    ``imported`` became jobs, or would in a dry run; ``already`` had before; ``finished`` were over
    in the old table.  ``busy`` are the keys of rows that another session held; ``aside`` are left
    to a person.
    """

    source: str
    executed: bool
    imported: int = 0
    already: int = 0
    finished: int = 0
    busy: list[str] = field(factory=list[str])
    aside: list[SetAside] = field(factory=list[SetAside])

    @property
    def complete(self) -> bool:
        """Whether no row is left that another run, or a person, must see to."""
        return not self.busy and not self.aside

    @property
    def counts(self) -> dict[str, int]:
        """The numbers, by disposition."""
        return {
            "imported": self.imported,
            "already": self.already,
            "finished": self.finished,
            "busy": len(self.busy),
            "set_aside": len(self.aside),
        }


class CutOverRefused(LeasebookError):
    """The guard was not put up; nothing was changed."""

    code = "cut_over_refused"

    def __init__(self, source: str, seen: str, remedy: str) -> None:
        super().__init__(f"cannot cut over from {source}: {seen}. {remedy}.")
        self.source = source


def import_table(
    table: OldTable,
    mapping: TableMap,
    jobs: Mapping[str, JobType],
    *,
    execute: bool,
    batch_rows: int = BATCH_ROWS_MAX,
) -> ImportReport:
    """Import what waits, in batches of at most ``batch_rows`` rows, each a transaction.

    Without ``execute`` everything is read, locked and checked the same way, and nothing written.
    Raises InvalidValue or UnknownName for a map that does not fit, StoreUnavailable; batches that
    were committed by then stay.
    """
    check_map(mapping, table.columns, jobs)
    survey = table.survey(mapping.reading)
    report = ImportReport(table.source, execute, finished=survey.finished)
    run = _Run(table, mapping, report, execute)
    interpreter = Interpreter(table.source, mapping, table.columns, jobs, survey.now)
    if execute:
        table.note(Noted("import_started", None, dumps({"source": table.source})))
    keys: list[str] = []
    unclear: list[SetAside] = []
    for row in survey.rows:
        if row.keyless or row.copies > 1:
            unclear.append(_without_identity(row))
        elif row.imported:
            report.already += 1
        else:
            keys.append(row.key)
    for start in range(0, len(keys), batch_rows):
        run.batch(interpreter, keys[start : start + batch_rows])
    report.aside += unclear
    if execute:
        for each in unclear:
            table.note(_line(table.source, each))
        detail = {"source": table.source, **report.counts}
        table.note(Noted("import_finished", None, dumps(detail)))
    return report


def refuse_what_is_left(report: ImportReport) -> None:
    """Raise CutOverRefused when a dry run found rows that an import would still take."""
    if report.imported:
        seen = f"{report.imported:,} rows wait in it that can be imported"
        raise CutOverRefused(report.source, seen, "Run import-table with --execute first")
    if report.busy:
        seen = f"{len(report.busy):,} rows are held by other sessions"
        raise CutOverRefused(report.source, seen, "Stop the old workers, and import again")


def refuse_what_came(report: ImportReport, rows: Sequence[Listed]) -> None:
    """Raise CutOverRefused when ``rows`` has some that the dry run did not know."""
    known = {each.key for each in report.aside}
    new = [
        row
        for row in rows
        if not (row.imported or row.keyless or row.copies > 1 or row.key in known)
    ]
    if new:
        seen = f"{len(new):,} rows have come into it meanwhile"
        raise CutOverRefused(report.source, seen, "Stop who writes to it, and import again")


@frozen
class _Run:
    """One run over the table."""

    table: OldTable
    mapping: TableMap
    report: ImportReport
    execute: bool

    def batch(self, interpreter: Interpreter, keys: Sequence[str]) -> None:
        """Import these rows; one that the database refuses is set aside alone."""
        try:
            done = self._batch(interpreter, keys)
        except DataRefused as refusal:
            if len(keys) > 1:
                half = len(keys) // 2
                self.batch(interpreter, keys[:half])
                self.batch(interpreter, keys[half:])
                return
            seen = f"the database refuses it: {refusal.reason}"
            aside = SetAside(keys[0], "refused", seen, "mend the row, or its map")
            self.table.note(_line(self.table.source, aside))
            done = ImportReport(self.table.source, self.execute, aside=[aside])
        report = self.report
        report.imported += done.imported
        report.already += done.already
        report.finished += done.finished
        report.busy += done.busy
        report.aside += done.aside

    def _batch(self, interpreter: Interpreter, keys: Sequence[str]) -> ImportReport:
        source = self.table.source
        done = ImportReport(source, self.execute)
        orders: dict[str, Order] = {}
        with self.table.batch(self.mapping.reading, keys, keep=self.execute) as batch:
            done.busy += batch.busy
            # What is neither locked nor held has been taken away meanwhile: its work is done.
            done.finished += len(keys) - len(batch.rows) - len(batch.busy)
            for row in batch.rows:
                if row.finished and not row.waiting:
                    done.finished += 1
                    continue
                try:
                    orders[row.key] = _order(interpreter, row)
                except Ambiguous as why:
                    done.aside.append(SetAside(row.key, why.reason, why.seen, why.remedy))
            if self.execute:
                fresh = batch.claim(list(orders))
                batch.accept([order for key, order in orders.items() if key in fresh])
                batch.note([_line(source, each) for each in done.aside])
            else:
                fresh = set(orders)
        done.imported = len(fresh)
        done.already += len(orders) - len(fresh)
        return done


def _order(interpreter: Interpreter, row: OldRow) -> Order:
    if row.waiting and row.finished:
        raise Ambiguous(
            "contradictory",
            "the map says of it both that it waits and that it is over",
            "make `where` and `finished` of the map exclude each other",
        )
    if not row.waiting:
        raise Ambiguous(
            "half_finished",
            "it neither waits nor is over: a worker has begun it",
            "let that worker finish, or set the row back to waiting, and import again; "
            "a row that is over must be named by `finished` in the map",
        )
    return interpreter.order(row)


def _without_identity(row: Listed) -> SetAside:
    if row.keyless:
        return SetAside(
            f"{row.key} at {row.place}", "null_key", "its key is null", "give the row a key"
        )
    return SetAside(
        f"{row.key} at {row.place}",
        "duplicate_key",
        f"{row.copies} rows have this key",
        "give each a key of its own, or name other columns as `key` in the map",
    )


def _line(source: str, aside: SetAside) -> Noted:
    """Evidence of a row that was set aside: once for each reason, however often it is met."""
    told = f"{source}\0{aside.key}\0{aside.reason}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:40]
    detail = {"source": source, "key": aside.key, "reason": aside.reason, "seen": aside.seen}
    return Noted("import_set_aside", f"import {digest}", dumps(detail))
