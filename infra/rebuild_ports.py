"""What holding the claim table against the log needs, before anybody provides it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from attrs import frozen

from ..domain.errors import LeasebookError
from ..domain.log import Recorded
from ..projections.claim import KeptRow
from ..projections.streams import Stream


@frozen
class Candidate:
    """A job as log and claim table have it.

    ``stream`` is empty when the log does not know it, ``kept`` None when it has no row or, with
    ``unreadable``, one that stands for no job.  ``awaited``: another row is blocked by it.
    """

    job_id: UUID
    stream: tuple[Recorded, ...]
    kept: KeptRow | None
    unreadable: bool = False
    awaited: bool = False


@frozen
class Chunk:
    """Some jobs in order of id, at one moment.  ``last`` is where they end, None: at the end."""

    candidates: Sequence[Candidate]
    last: UUID | None
    events: int


@frozen
class Place:
    """How far a repair has come: all jobs up to ``last``, of which ``events`` were read."""

    last: UUID | None = None
    events: int = 0
    rows: int = 0


class Mending(Protocol):
    """A transaction that has locked the rows of some jobs."""

    def candidates(self) -> Sequence[Candidate]:
        """The jobs as they stand under the locks."""
        ...

    def put(self, rows: Sequence[KeptRow]) -> None:
        """Let these rows be as given; who blocks one of them learns of it.

        Raises DataRefused when another row has the same unique key or is the same open group.
        """
        ...

    def drop(self, ids: Sequence[UUID]) -> None:
        """Let these jobs have no row."""
        ...

    def record(self, job_id: UUID, found: Sequence[str]) -> None:
        """Tell the audit log what was wrong with a row."""
        ...

    def reached(self, place: Place) -> None:
        """Let the next repair begin here, if this transaction commits."""
        ...


class ClaimTable(Protocol):
    """The claim table and its log."""

    def events(self) -> int:
        """About how many events the log holds; 0 when that is not known."""
        ...

    def chunk(self, after: UUID | None) -> Chunk:
        """The next jobs after an id, whole streams and rows, in one snapshot."""
        ...

    def place(self) -> Place:
        """Where a repair was broken off; the beginning when none was."""
        ...

    def mending(self, ids: Sequence[UUID]) -> AbstractContextManager[Mending]:
        """A short transaction that holds the rows of these jobs, as far as they have one.

        Raises RowsBusy when somebody holds one of them for longer than a moment, and
        RepairElsewhere when another repair is at work.
        """
        ...

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        ...


class Part(Protocol):
    """A transaction that makes some rows of the shadow anew.

    ``events`` is how many events of the log it stands for, known when its pieces have been read;
    ``last`` whether no more jobs follow in order of id.
    """

    events: int
    last: bool

    def pieces(self) -> Iterator[Sequence[Stream]]:
        """The streams of its jobs, whole, some at a time; none of them has a row any more."""
        ...

    def write(self, rows: Sequence[KeptRow]) -> None:
        """Give the shadow these rows of the last piece; whether one is waited for is found out.

        Raises DataRefused when another row has the same unique key or is the same open group.
        """
        ...


class ShadowTable(Protocol):
    """A second claim table, made from the log beside the first, whose place it takes."""

    def events(self) -> int:
        """About how many events the log holds; 0 when that is not known."""
        ...

    def begin(self) -> ShadowPlace:
        """Make the shadow, or find out how far an earlier rebuild came with it.

        Raises RebuildRefused when a new table could not stand in for the old one, NotALiveLog, and
        whatever keeps windows of the log from being read.
        """
        ...

    def copying(self) -> AbstractContextManager[Part]:
        """The next jobs of the log in order of id.  Raises RebuildElsewhere, as all of these do."""
        ...

    def following(self) -> AbstractContextManager[Part]:
        """The jobs that something was committed of since this was last asked."""
        ...

    def complete(self) -> None:
        """Give the shadow all that the table has beside its rows."""
        ...

    def gate(self) -> AbstractContextManager[Part]:
        """The last such jobs, while nobody is at the table; then the shadow takes its place.

        Raises GateBusy when the gate cannot be had in a moment; nothing has happened then.
        """
        ...

    def gate_seconds(self) -> float:
        """How long the gate was held, up to the commit."""
        ...

    def close(self) -> None:
        """Close the connection; a later question opens another."""
        ...


@frozen
class ShadowPlace:
    """How far a rebuild has come.  ``copied``: with every job, but for what happened meanwhile."""

    copied: bool
    events: int = 0


class RowsBusy(Exception):
    """A row was not to be had in a moment; ask again."""


class RepairElsewhere(LeasebookError):
    """Another repair of the same claim table is at work."""

    code = "repair_elsewhere"

    def __init__(self) -> None:
        super().__init__(
            "cannot repair: another repair of this claim table is at work. Wait until it has ended."
        )


class GateBusy(Exception):
    """The table was not to be had in a moment; ask again.  ``why`` names sessions in the way."""

    def __init__(self, what: str, pids: Sequence[int] | None = None) -> None:
        self.why = what
        if pids is not None:
            who = f"pid{'s' * (len(pids) > 1)} {', '.join(map(str, pids))}"
            self.why = f"{who if pids else 'a session that has gone since'} {what}"
        super().__init__(self.why)


class RebuildElsewhere(LeasebookError):
    """Another rebuild of the same claim table is at work."""

    code = "rebuild_elsewhere"

    def __init__(self) -> None:
        super().__init__(
            "cannot rebuild: another rebuild of this claim table is at work, or was started anew. "
            "Wait until it has ended."
        )


class RebuildRefused(LeasebookError):
    """A new table could not stand in for the claim table, or the log gives no such table."""

    code = "rebuild_refused"

    def __init__(self, found: Sequence[str], remedy: str) -> None:
        self.found = tuple(found)
        super().__init__(f"cannot rebuild the claim table: {'; '.join(found)}. {remedy}")


class GateShut(LeasebookError):
    """The claim table was not to be had for a moment in all the time that was tried."""

    code = "gate_shut"

    def __init__(self, tries: int, why: str) -> None:
        super().__init__(
            f"cannot swap the claim table: in {tries} tries {why}. Nothing was swapped and the "
            "shadow is kept. End those transactions, and run it again: it goes on here."
        )


class NotALiveLog(LeasebookError):
    """The log was imported to be looked at: with rows its jobs would run a second time."""

    code = "not_a_live_log"

    def __init__(self) -> None:
        super().__init__(
            "cannot repair: this log was imported from a bundle to be looked at, and has no claim "
            "table on purpose. With one, its jobs would run again."
        )
