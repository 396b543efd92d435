"""What the import needs of somebody's queue table, before anybody provides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from .caller_ports import Order


@frozen
class Reading:
    """What is read of the table: columns by name, and two SQL conditions on a row.

    ``key`` and ``order`` are empty where the primary key is meant.
    """

    key: tuple[str, ...]
    order: tuple[str, ...]
    columns: tuple[str, ...]
    where: str
    finished: str


@frozen
class Listed:
    """A row that is not over.  ``key`` is a JSON array of texts; ``place`` names it without one."""

    key: str
    keyless: bool
    copies: int
    place: str
    imported: bool


@frozen
class Survey:
    """The table at one moment, its rows in the order in which they were queued."""

    now: datetime
    rows: Sequence[Listed]
    finished: int


@frozen
class OldRow:
    """A row as the table holds it: whether it waits, whether it is over, and its columns as JSON.

    ``key`` is its primary key as a JSON array of texts: ``["17"]``.
    """

    key: str
    waiting: bool
    finished: bool
    values: Mapping[str, Any]


@frozen
class Noted:
    """A line for the audit log: written once for each ``request_id``, and always for None."""

    kind: str
    request_id: str | None
    detail: str


class OldBatch(Protocol):
    """Some rows of the table, locked until the batch ends."""

    @property
    def rows(self) -> Sequence[OldRow]:
        """Those that could be locked, in the order asked for."""
        ...

    @property
    def busy(self) -> Sequence[str]:
        """The keys of those that another session holds."""
        ...

    def claim(self, keys: Sequence[str]) -> set[str]:
        """Remember rows as imported; the keys of those that were not yet."""
        ...

    def accept(self, orders: Sequence[Order]) -> None:
        """Write the jobs.  Raises DataRefused."""
        ...

    def note(self, lines: Sequence[Noted]) -> None:
        """Append to the audit log."""
        ...


class OldTable(Protocol):
    """Somebody's queue table, in the database of the book."""

    @property
    def source(self) -> str:
        """The table's full name, under which its rows are remembered."""
        ...

    @property
    def columns(self) -> Mapping[str, str]:
        """Types by column."""
        ...

    def survey(self, reading: Reading) -> Survey:
        """Every row that is not over."""
        ...

    def batch(
        self, reading: Reading, keys: Sequence[str], *, keep: bool
    ) -> AbstractContextManager[OldBatch]:
        """Lock these rows; commit at the end of the block, or undo everything unless ``keep``."""
        ...

    def note(self, line: Noted) -> None:
        """Append to the audit log in a transaction of its own."""
        ...
