"""What a replay reads, whoever keeps it: a database in use, or a file that somebody sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from ..domain.errors import LeasebookError
from ..domain.log import Recorded
from ..projections.replay.facts import AuditLine
from ..projections.status import Summary

#: What kept a job that was ready earlier than so long before the window is not looked for.
LOOK_BACK = timedelta(hours=1)


class TooManyEvents(LeasebookError):
    """A replay would have read more events than it may; nothing was answered."""

    code = "too_many_events"

    def __init__(self, most: int, until: datetime) -> None:
        super().__init__(
            f"cannot replay: up to {until.isoformat(timespec='seconds')} there are more than "
            f"{most:,} events to read. Give a later --from or one --job, or allow more with "
            "--max-events."
        )
        self.most = most


class History(Protocol):
    """A log and its audit log up to any moment."""

    @property
    def known_from(self) -> datetime | None:
        """Since when it is known which workers there were; None: always."""
        ...

    def now(self) -> datetime:
        """The moment from which ``-15m`` counts."""
        ...

    def events(
        self, until: datetime, since: datetime | None = None, job: UUID | None = None
    ) -> Iterator[Recorded]:
        """The events not after ``until``, by job and version, whole streams from their birth on.

        Streams that had completed before ``since`` may be left out; of one ``job`` only its own is
        read.  Raises TooManyEvents.
        """
        ...

    def pruned(self, job: UUID) -> Summary | None:
        """How a job ended of which no event is there any more, None when that is not kept."""
        ...

    def audit(self, until: datetime) -> Sequence[AuditLine]:
        """The lines not after ``until`` that ``facts.gather`` reads, in order of time."""
        ...

    def close(self) -> None:
        """Give back what it holds."""
        ...
