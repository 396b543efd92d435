"""How answers are shown: as records for programs, as tables for people.

A record is one JSON object whose member ``record`` says what it is.  ``json`` is one document with
all of them and the window, ``ndjson`` one record a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime

import click

from ....domain.job import Job
from ....projections.replay import clock
from ....projections.replay.at import standing
from ....projections.replay.facts import Refused
from ....projections.replay.runs import Run
from ....projections.status import status
from ..output import plain, print_json
from .asking import Asked, Replay

Record = dict[str, object]


def print_records(asked: Asked, replay: Replay, records: Iterable[Mapping[str, object]]) -> None:
    """Print records as ``json`` or ``ndjson``; the latter as they come."""
    if asked.format == "ndjson":
        for record in records:
            click.echo(json.dumps(record, default=plain, ensure_ascii=False))
    else:
        print_json({"from": replay.since, "to": replay.until, "records": list(records)})


def stamp(at: datetime | None) -> str | None:
    """A moment in a table."""
    return None if at is None else clock.stamp(at)


def job_record(kind: str, job: Job) -> Record:
    """A job without its arguments, which may be private or huge."""
    spec, lease = job.spec, job.lease
    return {
        "record": kind,
        "job": job.id,
        "name": spec.name,
        "queue": spec.queue,
        "priority": spec.priority,
        "standing": standing(job),
        "state": job.state,
        "status": status(job.state),
        "outcome": job.outcome,
        "version": job.version,
        "at": job.at,
        "due_at": job.due_at,
        "enqueued_at": spec.enqueued_at,
        "starts": job.starts,
        "attempts": job.attempts,
        "attempts_max": spec.policy.retries + 1,
        "interruptions": job.interruptions,
        "worker": None if lease is None else lease.worker,
        "lease": None if lease is None else lease.token,
        "blocked_by": job.blocked_by,
        "unique_key": spec.unique_key,
        "ordering_key": spec.ordering_key,
        "group_key": spec.group_key,
        "items": None if spec.group is None else len(job.items),
    }


def run_record(kind: str, run: Run) -> Record:
    """A run."""
    return {
        "record": kind,
        "job": run.job_id,
        "name": run.name,
        "queue": run.queue,
        "worker": run.worker,
        "start": run.start,
        "lease": run.token,
        "began": run.began,
        "ended": run.ended,
        "end": run.end,
        "why": run.why,
    }


def refused_record(refused: Refused) -> Record:
    """A late write that was refused."""
    return {
        "record": "refused_write",
        "job": refused.job_id,
        "name": refused.name,
        "worker": refused.worker,
        "lease": refused.lease,
        "answer": refused.answer,
        "at": refused.at,
    }
