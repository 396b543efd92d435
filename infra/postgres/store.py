"""The queue in PostgreSQL, as a worker sees it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from time import monotonic

from psycopg.errors import LockNotAvailable

from ...projections.row import FORMAT
from ..documents import dumps
from ..enrolment import Enrolment
from ..ports import Outlook, StoreUnavailable, Stranger
from .connection import Link, Params, Row, text_of
from .rows import texts
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import frame, look, order, workers
from .transaction import NO_FLOOR, PostgresTransaction
from .wakeup import LISTENER


class PostgresStore:
    """Implements ``ports.Store`` on one connection, made when it is first needed.

    A lost connection is made anew by the next call.  One thread uses one store.  Raises InvalidDsn
    from the first call when libpq cannot read ``dsn``, InvalidValue for an impossible ``schema``.
    """

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        *,
        application_name: str = "leasebook worker",
        settings: Settings | None = None,
    ) -> None:
        self._schema = Schema(schema)
        self._settings = settings or Settings()
        self._link = Link(dsn, self._settings, application_name, framed=True)
        self._listeners_at = float("-inf")

    @contextmanager
    def transaction(self) -> Generator[PostgresTransaction]:
        """Begin; commit when the block ends, roll back when it raises."""
        link = self._link
        try:
            began = link.say(frame.begin(self._settings))
            assert began is not None
            yield PostgresTransaction(link, self._schema, began[0], self._settings.collect_keys)
            link.commit()
        except BaseException:
            link.abandon()
            raise

    def outlook(
        self,
        queues: Sequence[str],
        names: Sequence[str],
        since: datetime | None = None,
        sample: int = 0,
    ) -> Outlook:
        """One read-only look at what is next, of what is due at ``since`` or later."""
        params: dict[str, object] = {
            "queues": texts(queues),
            "names": texts(names),
            "since": NO_FLOOR if since is None else since,
            "format": FORMAT,
        }
        if sample <= 0:
            ((at, due, lease_end, inbox),) = self._look(look.outlook, params)
            return Outlook(at, due, lease_end, inbox)
        params["limit"] = sample
        ((at, due, lease_end, inbox, met, formats),) = self._look(
            look.outlook_and_strangers, params
        )
        strangers = tuple(map(Stranger, met or (), formats or ()))
        return Outlook(at, due, lease_end, inbox, strangers)

    def enroll(self, worker: Enrolment) -> None:
        """Report a new worker for work, with its start in the audit log."""
        params: dict[str, object] = {
            "id": worker.id,
            "name": worker.name,
            "host": worker.host,
            "pid": worker.pid,
            "capacity": worker.capacity,
            "queues": texts(worker.queues),
            "code_version": worker.code_version,
            "detail": dumps(worker.detail()),
        }
        begin = frame.begin_write(self._settings)
        self._link.once(begin, workers.enroll(self._schema), params)

    def leave(self, worker: str) -> None:
        """Take a worker off the list after a clean stop, with the stop in the audit log."""
        begin = frame.begin_write(self._settings)
        self._link.once(begin, workers.leave(self._schema), {"worker": worker})

    def beat(self, worker: str) -> bool:
        """Count one heartbeat; False when the worker is not on the list or was declared dead."""
        begin = frame.begin_write(self._settings)
        return bool(self._link.once(begin, workers.beat(self._schema), {"worker": worker}))

    def is_idle(self, worker: str) -> bool:
        """Whether a worker is alive and holds no lease, of a locked row either."""
        ((idle,),) = self._look(workers.is_idle, {"worker": worker, "format": FORMAT})
        return bool(idle)

    def beats(self) -> dict[str, int]:
        """The beat counts of all living workers.

        Listeners of stopped processes are ended on this occasion, as all who are dead may be.
        """
        silence = self._settings.silence_seconds
        if monotonic() - self._listeners_at >= silence:
            self._listeners_at = monotonic()
            params = {"listener": LISTENER, "seconds": silence}
            begin = frame.begin_look(self._settings)
            self._link.once(begin, workers.end_stuck_listeners(), params)
        return dict(self._look(workers.beats, {}))

    def settle_key(self, key: str, patience: float) -> int | None:
        """The newest number in the order of a key, once no producer of the key is left."""
        begin = frame.begin_impatient(self._settings, patience)
        params = {"key": key, "schema": self._schema.name}
        try:
            ((newest,),) = self._link.once(begin, order.quiet_key(self._schema), params)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, LockNotAvailable):
                return None
            raise
        return int(newest)

    def close(self) -> None:
        """Give back the connection."""
        self._link.close()

    def _look(self, statement: Callable[[Schema], str], params: Params) -> list[Row]:
        begin = frame.begin_look(self._settings)
        return self._link.once(begin, text_of(statement, self._schema), params)
