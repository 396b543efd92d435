"""What a doctor looks at, what it may find, and from where on a fact is a finding."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from attrs import frozen

MEGABYTE = 1024 * 1024


class Severity(StrEnum):
    """How bad it is.  A note is no finding: nothing is wrong."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@frozen
class Finding:
    """One finding: ``code`` is stable, ``seen`` and ``remedy`` are sentences for people."""

    severity: Severity
    code: str
    seen: str
    remedy: str


@frozen
class TableFacts:
    """One table.  Sizes are bytes, with indexes and without; ages are seconds, None for never.

    ``rows`` and ``dead`` are the server's own estimates, ``needed`` is about what the rows need.
    """

    name: str
    rows: int
    dead: int
    total_bytes: int
    heap_bytes: int
    needed_bytes: int
    changed_since_analyze: int
    analyzed_age: float | None
    autovacuum: bool


@frozen
class SessionFacts:
    """A session that keeps a snapshot or a transaction open.

    ``kind`` is ``session``, ``walsender``, or ``prepared`` for a prepared transaction, which has no
    pid; ``who`` tells it apart.  ``holds`` is how many transactions have begun since its snapshot,
    None when it keeps nothing from vacuum.  Ages are seconds.
    """

    kind: str
    pid: int | None
    who: str
    state: str
    age: float
    idle: bool
    holds: int | None
    stuck_writing: bool = False


@frozen
class SlotFacts:
    """A replication slot.  ``holds`` as of a session, ``kept_bytes`` of WAL."""

    name: str
    active: bool
    holds: int | None
    kept_bytes: int


@frozen
class Facts:
    """Everything that the rules look at, at one moment.

    ``held`` are there now, ``aborted`` were within a day.
    """

    tables: Sequence[TableFacts] = ()
    sessions: Sequence[SessionFacts] = ()
    slots: Sequence[SlotFacts] = ()
    schema_problems: Sequence[str] = ()
    autovacuum: bool = True
    track_counts: bool = True
    naptime: float = 60.0
    freeze_age: int = 0
    multixact_age: int = 0
    notify_usage: float = 0.0
    hidden_sessions: int = 0
    silent_workers: Sequence[str] = ()
    living_workers: int = 0
    held: int = 0
    aborted: int = 0
    due: int = 0
    oldest_due: float | None = None
    events_per_day: float = 0.0
    bytes_per_event: float = 0.0
    in_recovery: bool = False


@frozen
class Thresholds:
    """From where on a fact is a finding.  Times are seconds."""

    snapshot_seconds: float = 60.0
    late_seconds: float = 300.0
    naptime_seconds: float = 300.0
    dead_rows: int = 10_000
    dead_share: float = 0.5
    bloat_bytes: int = 100 * MEGABYTE
    bloat_times: float = 4.0
    stale_rows: int = 50_000
    stale_share: float = 0.5
    wal_bytes: int = 10 * 1024 * MEGABYTE
    freeze_age: int = 1_000_000_000
    notify_usage: float = 0.1
    growth_bytes: int = 10 * 1024 * MEGABYTE
