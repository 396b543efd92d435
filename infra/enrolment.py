"""A worker as it reports for work, and what is put on record of it."""

from __future__ import annotations

from attrs import frozen

#: With more handlers than this their names are not put on record.
NAMES_MAX = 500


@frozen
class Enrolment:
    """A worker as it reports for work.  ``id`` is unique to this start, ``name`` may recur.

    ``names`` are the job names it has handlers for.
    """

    id: str
    name: str
    host: str
    pid: int
    capacity: int
    queues: tuple[str, ...]
    code_version: str
    names: tuple[str, ...]

    def detail(self) -> dict[str, object]:
        """What the audit log keeps of it; without ``names`` when there are too many of them."""
        told: dict[str, object] = {
            "name": self.name,
            "host": self.host,
            "pid": self.pid,
            "capacity": self.capacity,
            "queues": self.queues,
            "code_version": self.code_version,
        }
        if len(self.names) <= NAMES_MAX:
            told["names"] = sorted(self.names)
        return told
