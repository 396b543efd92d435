"""What the in-memory database holds, and how one open transaction sees it.

The committed tables are plain dicts.  A transaction writes into overlays, which others do not see;
commit lays them over the tables.  Nobody else can have written the same key meanwhile, because a
transaction locks what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count
from typing import Generic, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from attrs import define, field

from ...projections.row import SpecRow, StateRow
from ...projections.status import Summary
from ..codec import EventRow
from ..enrolment import Enrolment
from ..ports import Evidence

Clock: TypeAlias = Callable[[], datetime]
GroupKey: TypeAlias = tuple[str, str, str]
"""Queue, name and group key: the identity of a group."""

K = TypeVar("K")
V = TypeVar("V")


class StoredEvent(NamedTuple):
    """One line of the log."""

    version: int
    event_id: int
    xid: int
    row: EventRow


class StoredJob(NamedTuple):
    """One row of the claim table.  ``seq`` is the event id of the enqueued event.

    Of a group whose first item drew a number, that number is its ``seq``.  ``has_waiter`` tells
    that another job waits for the end of this one.
    """

    seq: int
    spec: SpecRow
    state: StateRow
    has_waiter: bool = False


class StoredItem(NamedTuple):
    """One line of the inbox.  ``spec`` is the document of a group that this item would open."""

    id: int
    at: datetime
    key: GroupKey
    item: str
    spec: str
    ordering_key: str | None = None
    sequence: int | None = None


class StoredWorker(NamedTuple):
    """One worker that reported for work."""

    enrolment: Enrolment
    beats: int
    alive: bool


class StoredEvidence(NamedTuple):
    """One line of the audit log."""

    id: int
    at: datetime
    xid: int
    evidence: Evidence


class StoredRequest(NamedTuple):
    """The job of an idempotency key, and the digest of what was asked for."""

    job_id: UUID
    digest: str


@define
class Tables:
    """Everything that is committed, and the sequences, which no rollback turns back."""

    clock: Clock
    events: dict[UUID, tuple[StoredEvent, ...]] = field(factory=dict[UUID, tuple[StoredEvent, ...]])
    jobs: dict[UUID, StoredJob] = field(factory=dict[UUID, StoredJob])
    inbox: dict[int, StoredItem] = field(factory=dict[int, StoredItem])
    workers: dict[str, StoredWorker] = field(factory=dict[str, StoredWorker])
    audit: list[StoredEvidence] = field(factory=list[StoredEvidence])
    checkpoints: dict[str, datetime] = field(factory=dict[str, datetime])
    requests: dict[str, StoredRequest] = field(factory=dict[str, StoredRequest])
    summaries: dict[UUID, Summary] = field(factory=dict[UUID, Summary])
    event_ids: Iterator[int] = field(factory=lambda: count(1))
    item_ids: Iterator[int] = field(factory=lambda: count(1))
    audit_ids: Iterator[int] = field(factory=lambda: count(1))
    xids: Iterator[int] = field(factory=lambda: count(1))
    _latest: datetime | None = None

    def now(self) -> datetime:
        """The time by the clock, which never goes backwards here whatever the clock does."""
        at = self.clock()
        if self._latest is None or at > self._latest:
            self._latest = at
        return self._latest


class Overlay(Generic[K, V]):
    """A table as one transaction sees it: what is committed now, and its own writes over it."""

    def __init__(self, table: dict[K, V]) -> None:
        self._table = table
        self._own: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The value of ``key``, None when it is not there."""
        return self._own[key] if key in self._own else self._table.get(key)

    def put(self, key: K, value: V) -> None:
        """Insert or update."""
        self._own[key] = value

    def remove(self, key: K) -> None:
        """Delete."""
        self._own[key] = None

    def values(self) -> Iterator[V]:
        """Every value that is there, in no promised order."""
        for key, value in self._table.items():
            if key not in self._own:
                yield value
        for own in self._own.values():
            if own is not None:
                yield own

    def commit(self) -> None:
        """Lay the own writes over the table."""
        for key, value in self._own.items():
            if value is None:
                self._table.pop(key, None)
            else:
                self._table[key] = value
        self._own.clear()
