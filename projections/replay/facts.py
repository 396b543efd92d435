"""What the audit log tells beside the streams: who was there to work, and what was refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from attrs import Factory, define, field, frozen

#: Between two moments; None: not over yet.
Between: TypeAlias = tuple[datetime, datetime | None]
#: A job and the token of one of its leases.
RunKey: TypeAlias = tuple[UUID, int]


@frozen
class AuditLine:
    """One line of the audit log, its ``detail`` parsed."""

    at: datetime
    kind: str
    detail: Mapping[str, Any]
    job_id: UUID | None = None
    worker: str | None = None


@define
class WorkerFacts:
    """One start of a worker.  ``capacity`` runs at once, of the jobs of ``queues``.

    ``names`` are the job names it has handlers for; None: that is not known, and taken for all.
    """

    id: str
    name: str
    queues: frozenset[str]
    capacity: int
    started: datetime
    ended: datetime | None = None
    died: bool = False
    names: frozenset[str] | None = None
    code_version: str = ""

    def serves(self, queue: str, name: str) -> bool:
        """Whether it takes the jobs of a name from a queue."""
        return queue in self.queues and (self.names is None or name in self.names)


@frozen
class Refused:
    """A late write that was refused: what the run wanted to say, and when it came."""

    at: datetime
    job_id: UUID
    lease: int
    answer: str
    worker: str | None
    name: str


@define
class Facts:
    """Everything that the audit log is read for here.

    ``paused`` holds the pauses of each queue, ``limits`` how many of its jobs might run at once
    from a moment on (None: any number), both in order of time.
    """

    workers: dict[str, WorkerFacts] = Factory(dict[str, WorkerFacts])
    paused: dict[str, list[Between]] = Factory(dict[str, list[Between]])
    limits: dict[str, list[tuple[datetime, int | None]]] = field(
        factory=dict[str, list[tuple[datetime, int | None]]]
    )
    refused: list[Refused] = field(factory=list[Refused])

    def late_ends(self) -> dict[RunKey, Refused]:
        """The refused writes by the run that they came from."""
        return {(each.job_id, each.lease): each for each in self.refused}


def gather(lines: Iterable[AuditLine]) -> Facts:
    """The facts in ``lines``, which come in order of time; kinds that say nothing here are left."""
    facts = Facts()
    for line in lines:
        if (read := KINDS.get(line.kind)) is not None:
            read(facts, line)
    return facts


def _started(facts: Facts, line: AuditLine) -> None:
    if line.worker is None:
        return
    detail = line.detail
    names = detail.get("names")
    facts.workers[line.worker] = WorkerFacts(
        line.worker,
        str(detail.get("name", line.worker)),
        frozenset(map(str, detail.get("queues", ()))),
        int(detail.get("capacity", 0)),
        line.at,
        names=None if names is None else frozenset(map(str, names)),
        code_version=str(detail.get("code_version", "")),
    )


def _stopped(facts: Facts, line: AuditLine) -> None:
    worker = facts.workers.get(line.worker or "")
    if worker is not None and worker.ended is None:
        worker.ended = line.at
        worker.died = line.kind == "worker_died"


def _late(facts: Facts, line: AuditLine) -> None:
    detail = line.detail
    if line.job_id is not None and isinstance(lease := detail.get("lease"), int):
        answer, name = str(detail.get("answer", "")), str(detail.get("name", ""))
        refused = Refused(line.at, line.job_id, lease, answer, line.worker, name)
        facts.refused.append(refused)


def _paused(facts: Facts, line: AuditLine) -> None:
    pauses = facts.paused.setdefault(str(line.detail.get("queue")), [])
    if not _is_open(pauses):
        pauses.append((line.at, None))


def _resumed(facts: Facts, line: AuditLine) -> None:
    pauses = facts.paused.get(str(line.detail.get("queue")), [])
    if _is_open(pauses):
        pauses[-1] = (pauses[-1][0], line.at)


def _is_open(pauses: Sequence[Between]) -> bool:
    return bool(pauses) and pauses[-1][1] is None


def _limited(facts: Facts, line: AuditLine) -> None:
    limit = line.detail.get("limit")
    changes = facts.limits.setdefault(str(line.detail.get("queue")), [])
    changes.append((line.at, None if limit is None else int(limit)))


def _told(facts: Facts, line: AuditLine) -> None:
    """No wait hangs on a schedule: an incident tells of it."""


#: kind of an audit line -> what it adds to the facts; the only kinds that a reader must bring
KINDS = {
    "worker_started": _started,
    "worker_stopped": _stopped,
    "worker_died": _stopped,
    "late_write_refused": _late,
    "queue_paused": _paused,
    "queue_resumed": _resumed,
    "limit_changed": _limited,
    "schedule_changed": _told,
}
