"""What one transaction does to the shadow: some jobs as the log has them, in order of id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from attrs import define

from ...projections.claim import KeptRow
from ...projections.streams import Stream, by_job
from ..rebuild_ports import GateBusy
from .batches import row_columns
from .connection import Link, Params
from .position import Position
from .rows import flags, numbers, recorded, uuids
from .schema.name import Schema
from .statements import look, rebuilding, windows
from .statements import shadow as statements
from .windows import bounds

FIRST, LAST = UUID(int=0), UUID(int=2**128 - 1)
PIECE_JOBS = 2_000


@define
class Tally:
    """By how many rows the shadow has grown."""

    rows: int = 0


class ChunkPart:
    """Implements ``Part`` for the next jobs of the log, which the shadow has no row of."""

    def __init__(self, link: Link, schema: Schema, after: UUID | None, limit: int) -> None:
        self._link = link
        self._schema = schema
        self._bounds: dict[str, object] = {"after": after or FIRST, "limit": limit}
        self.tally = Tally()
        self.events = 0
        self.upto: UUID | None = None
        self.last = False

    def pieces(self) -> Iterator[Sequence[Stream]]:
        """All of its streams at once."""
        link, schema = self._link, self._schema
        self.upto = link.ask(rebuilding.chunk_end(schema), self._bounds)[0][0]
        self.last = self.upto is None
        self._bounds["last"] = self.upto or LAST
        rows = link.ask(rebuilding.events(schema), self._bounds)
        self.events = len(rows)
        yield list(by_job(map(recorded, rows)))

    def write(self, rows: Sequence[KeptRow]) -> None:
        """Give the shadow these rows; who waits for them is found out when all are there."""
        _put(self._link, self._schema, rows, self.tally)


class WindowPart:
    """Implements ``Part`` for the jobs of a window of the log."""

    last = True

    def __init__(
        self,
        link: Link,
        schema: Schema,
        after: Position,
        upto: Position,
        waiters: bool,
        most: int | None = None,
    ) -> None:
        self._link = link
        self._schema = schema
        self._bounds = bounds(after, upto)
        self._waiters = waiters
        self._most = most
        self.tally = Tally()
        self.events = 0

    def pieces(self) -> Iterator[Sequence[Stream]]:
        """Its streams, some at a time.

        All rows go before the first comes back: a unique key may have passed from one to another.
        Raises GateBusy for more than ``most`` events.
        """
        touched = self._ask(windows.touched, self._bounds)
        self.events = len(touched)
        if self._most is not None and self.events > self._most:
            raise GateBusy(f"{self.events:,} events came in at once")
        ids = [job_id for (job_id,), _ in groupby(touched)]
        if ids:
            ((gone,),) = self._ask(statements.clear, {"ids": uuids(ids)})
            self.tally.rows -= gone
        for start in range(0, len(ids), PIECE_JOBS):
            asked = {"ids": uuids(ids[start : start + PIECE_JOBS])}
            yield list(by_job(map(recorded, self._ask(look.streams, asked))))

    def write(self, rows: Sequence[KeptRow]) -> None:
        """Give the shadow these rows, and let rows know who waits for them."""
        _put(self._link, self._schema, rows, self.tally)
        if not rows or not self._waiters:
            return
        ids = {"ids": uuids([each.row[0].id for each in rows])}
        self._ask(statements.tell_awaited, ids)
        self._link.ask(rebuilding.tell_blockers(self._schema, statements.SHADOW), ids)

    def _ask(self, statement: Any, params: Params) -> list[Any]:
        return self._link.ask(statement(self._schema), params)


def _put(link: Link, schema: Schema, rows: Sequence[KeptRow], tally: Tally) -> None:
    if not rows:
        return
    columns = row_columns([each.row for each in rows])
    columns["seq"] = numbers([each.seq for each in rows])
    columns["has_waiter"] = flags([each.has_waiter for each in rows])
    link.ask(rebuilding.put(schema, statements.SHADOW), columns)
    tally.rows += len(rows)
