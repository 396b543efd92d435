"""Pruning: whole streams of old jobs that are over, taken out of the log batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from uuid import UUID

from attrs import frozen
from psycopg.errors import InsufficientPrivilege

from ..ports import StoreUnavailable
from ..pruning_ports import Pruned, PruningRefused
from .connection import Link
from .schema.check import require_schema
from .schema.name import Schema
from .settings import Settings
from .statements import frame, summaries

#: Told after each batch.
Told = Callable[[Pruned], None]


@frozen
class PostgresPruning:
    """Prunes on a connection of its own; each batch is a transaction.

    Raises InvalidDsn, SchemaIncomplete, PruningRefused, and StoreUnavailable when the database does
    not answer, or not in time; what was pruned until then stays pruned.
    """

    dsn: str
    schema: Schema

    def prune(self, older_than: timedelta, batch: int, told: Told | None = None) -> Pruned:
        """Look at all jobs, ``batch`` at a time; see ``Book.prune``."""
        done = Pruned()
        for part in self._batches(older_than, batch):
            done = Pruned(
                done.looked + part.looked,
                done.pruned + part.pruned,
                done.kept + part.kept,
                part.reader or done.reader,
            )
            if told is not None:
                told(done)
        return done

    def _batches(self, older_than: timedelta, batch: int) -> Iterator[Pruned]:
        settings = Settings(prepare_after=None)
        begin, statement = frame.begin_write(settings), summaries.prune(self.schema)
        asked: dict[str, object] = {"seconds": older_than.total_seconds(), "batch": batch}
        after: UUID | None = None
        with closing(Link(self.dsn, settings, "leasebook prune")) as link:
            require_schema(link.connection(), self.schema)
            while True:
                with self._refusing():
                    [(after, *found)] = link.once(begin, statement, {**asked, "after": after})
                yield Pruned(*found)
                if after is None:
                    return

    @contextmanager
    def _refusing(self) -> Generator[None]:
        try:
            yield
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, InsufficientPrivilege):
                raise
            seen = error.__cause__.diag.message_primary or "permission denied"
            raise PruningRefused(self.schema.quoted, seen) from error
