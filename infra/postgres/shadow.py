"""The shadow of the claim table in PostgreSQL: filled by chunks, then by windows, then swapped in.

The gate is the table's own lock (decision 26).  Whoever appends an event holds a lock on the claim
table until the end of the transaction, so behind the gate the log stands still.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from attrs import evolve
from psycopg.errors import LockNotAvailable

from ..documents import dumps
from ..ports import StoreUnavailable
from ..rebuild_ports import GateBusy, NotALiveLog, RebuildElsewhere, RebuildRefused, ShadowPlace
from .connection import Link, Params
from .position import ForeignPosition, Position
from .rows import texts
from .schema.check import require_schema
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .shadow_parts import ChunkPart, WindowPart
from .shadow_place import Place, place_of
from .statements import frame, rebuilding, restoring, windows, workers
from .statements import shadow as statements
from .windows import end_of_log

CHUNK_EVENTS = 5_000
#: How long the gate is waited for; appenders queue up behind whoever waits.
GATE_MILLISECONDS = 200
#: How many events may be caught up with behind the gate.
GATE_EVENTS = 5_000
#: How long one statement may take that nobody else waits for: an index of a huge table.
PATIENT_SECONDS = 6 * 3600.0
#: How long the rest of a window may be thought about.
IDLE_SECONDS = 60.0
#: The name of its checkpoint, and of its turn.
REBUILD = "projection rebuild"
REBUILT = "table_rebuilt"


class PostgresShadow:
    """Implements ``ShadowTable`` on a connection of its own, made at the first question.

    Its role must own the tables.  Raises InvalidDsn, and StoreUnavailable when the database does
    not answer, or refuses what only an owner may do.
    """

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        settings: Settings | None = None,
        chunk_events: int = CHUNK_EVENTS,
    ) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings(prepare_after=None)
        self._patient = evolve(
            self._settings, statement_seconds=PATIENT_SECONDS, idle_seconds=IDLE_SECONDS
        )
        self._link = Link(dsn, self._settings, "leasebook projection")
        self._chunk_events = chunk_events
        self._gate_seconds = 0.0

    def require_schema(self) -> None:
        """Raise SchemaIncomplete when something is missing, with every problem and the remedy."""
        require_schema(self._link.connection(), self._schema)

    def events(self) -> int:
        """About how many events the log holds; 0 when that is not known."""
        asked = {"table": self._schema.table("job_events")}
        rows = self._link.once(frame.begin_look(self._settings), rebuilding.estimate(), asked)
        return rows[0][0] if rows else 0

    def begin(self) -> ShadowPlace:
        """Make the shadow, or find out how far an earlier rebuild came with it."""
        with self._transaction(frame.begin_window(self._patient)):
            home = self._ask(windows.checkpoint, {"name": windows.HOME})
            if home and json.loads(home[0][0]).get("system") == restoring.ELSEWHERE:
                raise NotALiveLog
            here = end_of_log(self._link, self._schema)
            self._require_replaceable()
            place = self._usable(here)
            if place is None:
                place = Place(here)
                self._drop()
                self._say_all(statements.making)
                self._reached(place)
        return ShadowPlace(place.copied, place.events)

    def discard(self) -> bool:
        """Throw away what an earlier rebuild has left; whether there was anything."""
        with self._transaction(frame.begin_write(self._patient)):
            place = self._place()
            if place is not None:
                self._drop()
                self._ask(windows.drop_checkpoint, {"name": REBUILD})
        return place is not None

    @contextmanager
    def copying(self) -> Generator[ChunkPart]:
        """The next jobs of the log in order of id."""
        with self._transaction(frame.begin_write(self._settings)):
            place = self._known()
            part = ChunkPart(self._link, self._schema, place.last, self._chunk_events)
            yield part
            self._reached(
                evolve(
                    place,
                    last=part.upto,
                    copied=part.last,
                    events=place.events + part.events,
                    rows=place.rows + part.tally.rows,
                )
            )

    @contextmanager
    def following(self) -> Generator[WindowPart]:
        """The jobs that something was committed of since this was last asked."""
        self._summarize()
        with self._transaction(frame.begin_steady_window(self._patient)):
            place = self._known()
            here = end_of_log(self._link, self._schema)
            place.position.require_home(here)
            part = WindowPart(self._link, self._schema, place.position, here, place.waiters)
            yield part
            self._reached(place.moved(here, part.events, part.tally.rows))

    def complete(self) -> None:
        """Give the shadow the indexes of the table, and let rows know who waits for them."""
        missing = self._link.once(
            frame.begin_look(self._settings), statements.indexing(self._schema), {}
        )
        for (statement,) in missing:
            with self._transaction(frame.begin_write(self._patient)):
                self._known()
                self._link.say(statement)
        with self._transaction(frame.begin_write(self._patient)):
            place = self._known()
            if not place.waiters:
                self._ask(statements.tell_all, {})
                self._reached(evolve(place, waiters=True))
        if missing:
            # Its statistics, and rows whose first readers behind the gate need not mark them.
            self._link.say(f"vacuum analyze {self._schema.table(statements.SHADOW)}")
            self._verify()

    @contextmanager
    def gate(self) -> Generator[WindowPart]:
        """The last such jobs, while nobody is at the table; then the shadow takes its place."""
        self._summarize()
        try:
            with self._transaction(frame.begin_window(self._patient)):
                place = self._known()
                self._link.say(statements.keep_others_out(self._schema))
                self._require_replaceable()
                self._require_complete()
                swap = [row[0] for row in self._ask(statements.swapping, {})]
                self._link.say(statements.close_gate(self._schema, GATE_MILLISECONDS))
                began = monotonic()
                if old := self._link.ask(statements.old_snapshots(), {}):
                    pids = [row[0] for row in old]
                    raise GateBusy("goes on in a snapshot of before", pids)
                here = end_of_log(self._link, self._schema, last=True)
                place.position.require_home(here)
                part = WindowPart(
                    self._link, self._schema, place.position, here, place.waiters, GATE_EVENTS
                )
                yield part
                done = place.moved(here, part.events, part.tally.rows)
                self._link.say(";\n".join(swap))
                self._ask(windows.drop_checkpoint, {"name": REBUILD})
                self._record({"events": done.events, "rows": done.rows})
                # (The server lets go of the locks before it takes the old files away.)
                self._gate_seconds = monotonic() - began
        except StoreUnavailable as error:
            if isinstance(error.__cause__, LockNotAvailable):
                pids = self._holders()
                raise GateBusy("held the table", pids) from error
            raise

    def gate_seconds(self) -> float:
        """How long the gate was held, up to the commit."""
        return self._gate_seconds

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        self._link.close()

    @contextmanager
    def _transaction(self, begin: str) -> Generator[None]:
        """A transaction of the only rebuild at work."""
        link = self._link
        try:
            link.say(begin)
            turn = {"schema": self._schema.name, "name": REBUILD}
            if not link.ask(windows.take_turn(), turn)[0][0]:
                raise RebuildElsewhere
            yield
            link.commit()
        except BaseException:
            link.abandon()
            raise

    def _ask(self, statement: Any, params: Params) -> list[Any]:
        return self._link.ask(statement(self._schema), params)

    def _say_all(self, statement: Any) -> None:
        for (each,) in self._ask(statement, {}):
            self._link.say(each)

    def _drop(self) -> None:
        self._link.say(f"drop table if exists {self._schema.table(statements.SHADOW)}")

    def _place(self) -> Place | None:
        rows = self._ask(windows.checkpoint, {"name": REBUILD})
        return None if not rows else place_of(json.loads(rows[0][0]))

    def _known(self) -> Place:
        """The place of the rebuild that is at work.  Raises RebuildElsewhere when it is gone."""
        if (place := self._place()) is None:
            raise RebuildElsewhere
        return place

    def _usable(self, here: Position) -> Place | None:
        """The place of an earlier rebuild if one can go on from it."""
        place, unlike = self._place(), self._ask(statements.unlike, {})
        if place is None or not unlike or unlike[0][0]:
            return None
        try:
            place.position.require_home(here)
        except ForeignPosition:
            return None
        return place

    def _reached(self, place: Place) -> None:
        position = {"name": REBUILD, "position": dumps(place.document())}
        self._ask(windows.move_checkpoint, position)

    def _require_replaceable(self) -> None:
        asked = {"columns": texts(statements.COLUMNS), "name": REBUILD}
        if found := [row[0] for row in self._ask(statements.in_the_way, asked)]:
            raise RebuildRefused(
                [f"{each} would be lost, or keep the old table" for each in found],
                "Drop it for the time of the rebuild, or let `projection repair` mend the rows.",
            )

    def _require_complete(self) -> None:
        """Raise GateBusy when the table was changed since the shadow was completed."""
        unlike = self._ask(statements.unlike, {})
        if not unlike or unlike[0][0]:
            raise RebuildRefused(
                ["its columns have changed meanwhile"], "Run it again: it begins anew."
            )
        if self._ask(statements.indexing, {}):
            raise GateBusy("an index of the table has changed")

    def _verify(self) -> None:
        """Make sure that the shadow has the rows that were given to it, and no more."""
        with self._transaction(frame.begin_write(self._patient)):
            place = self._known()
            ((rows,),) = self._ask(statements.count, {})
        if rows != place.rows:
            raise RebuildRefused(
                [f"the shadow has {rows:,} rows, and {place.rows:,} were written to it"],
                "Somebody else has written there: throw it away with --discard.",
            )

    def _summarize(self) -> None:
        begin = frame.begin_write(self._settings)
        self._link.once(begin, windows.summarize(self._schema), {})

    def _holders(self) -> list[int]:
        asked = {"table": self._schema.table(statements.JOBS)}
        begin = frame.begin_look(self._settings)
        rows = self._link.once(begin, statements.holders(self._schema), asked)
        return [row[0] for row in rows if row[0] is not None]

    def _record(self, detail: dict[str, int]) -> None:
        params = {
            "kinds": texts([REBUILT]),
            "job_ids": [None],
            "workers": texts([None]),
            "details": texts([dumps(detail)]),
        }
        self._ask(workers.record, params)
