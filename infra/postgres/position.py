"""How far a reader of the log has come: a snapshot, and the cluster whose snapshot it is.

Numbers are drawn when a transaction writes, not when it commits, so no number is a place to go on
from.  A snapshot is: it names what was committed, and what was still open below its end.
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from ...domain.errors import LeasebookError


@frozen
class Position:
    """Everything that ``snapshot`` sees has been read.

    ``snapshot`` is a ``pg_snapshot`` as text: ``xmin:xmax:open,open``.  ``system`` identifies the
    cluster, ``timeline`` its history since the last failover.
    """

    snapshot: str
    system: str
    timeline: str

    @property
    def end(self) -> int:
        """Every transaction from this number on is unseen."""
        return int(self.snapshot.split(":")[1])

    @property
    def open(self) -> tuple[int, ...]:
        """The transactions below the end that were not over, and so are unseen too."""
        text = self.snapshot.split(":")[2]
        return tuple(map(int, text.split(","))) if text else ()

    def document(self) -> dict[str, str]:
        """As it is stored with a checkpoint, and told in a manifest."""
        return {"snapshot": self.snapshot, "system": self.system, "timeline": self.timeline}

    def require_home(self, here: Position) -> None:
        """Raise ForeignPosition unless ``here`` is on the same cluster and timeline."""
        if self.system != here.system:
            raise ForeignPosition(f"cluster {self.system}", f"cluster {here.system}")
        if self.timeline != here.timeline:
            raise ForeignPosition(f"timeline {self.timeline}", f"timeline {here.timeline}")


def position_of(document: Any) -> Position:
    """The position that ``Position.document`` told.  Raises KeyError when something is missing."""
    return Position(document["snapshot"], document["system"], document["timeline"])


class LogOnStandby(LeasebookError):
    """A standby was asked for a window: its snapshots do not say which transactions are open."""

    code = "log_on_standby"

    def __init__(self) -> None:
        super().__init__(
            "cannot read the log by windows: this server is a standby, whose snapshots do not name "
            "the transactions that are open on its primary. Give the DSN of the primary."
        )


class ForeignPosition(LeasebookError):
    """A reader's place belongs to another cluster, or to the time before a failover."""

    code = "foreign_position"

    def __init__(self, seen: str, here: str) -> None:
        super().__init__(
            f"cannot go on reading: the place in the log belongs to {seen}, this is {here}, where "
            "transaction numbers mean other transactions. Begin again: drop that reader's "
            "checkpoint, and let it take everything once more."
        )


class ForeignLog(LeasebookError):
    """The log was copied here from another cluster, with the transaction numbers of that one."""

    code = "foreign_log"

    def __init__(self, system: str, here: str) -> None:
        super().__init__(
            f"cannot read the log by windows: it was written in cluster {system} and this is "
            f"cluster {here}, as after restoring a dump, so its transaction numbers tell nothing "
            "here. Workers, `leasebook replay`, `check` and `projection repair` go on as they are. "
            "After pg_upgrade, which keeps the numbers, say so: leasebook projection adopt."
        )


class WroteBefore(LeasebookError):
    """A window was asked for in a transaction that has written already, and would miss its rest."""

    code = "wrote_before"

    def __init__(self) -> None:
        super().__init__(
            "cannot end a window here: this transaction has written already, and what it writes "
            "later would count as read. Ask for the window before the first write."
        )
