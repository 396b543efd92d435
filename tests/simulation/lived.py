"""What jobs lived through: runs that were interrupted, and waits, held against what really was."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from leasebook.domain import OnExpired
from leasebook.projections.replay.clock import micros
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.replay.waits import waits

from .handlers import Effect

if TYPE_CHECKING:
    from .judge import Runs, Streams
    from .world import World


def interrupted_is_not_repeated(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """Of a type that aborts another run begins only after one that came to an end of its own."""
    by_job: dict[UUID, list[Effect]] = defaultdict(list)
    for effect in world.script.ledger:
        if effect.job.spec.policy.on_expired is OnExpired.ABORT:
            by_job[effect.job.id].append(effect)
    for job_id, effects in by_job.items():
        for effect in effects[:-1]:
            if effect.ending is None:
                yield f"job {job_id} ran again after lease {effect.token}, which was interrupted"


def waits_add_up(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """I17: the segments of each wait sum to it exactly, and of none is anything unknown."""
    log = (each for stream in streams.values() for each in stream)
    lines = [
        AuditLine(at, each.kind, json.loads(each.detail), each.job_id, each.worker)
        for _, at, _, each in world.database.audit()
    ]
    for wait in waits(log, gather(lines)):
        assert wait.started is not None
        parts = sum(each.microseconds for each in wait.segments)
        whole = micros(wait.started) - micros(wait.since)
        if not parts == wait.microseconds == whole:
            yield f"job {wait.job_id}, start {wait.start}: {parts} of {whole} µs are explained"
        if wait.of(Cause.UNKNOWN):
            yield f"job {wait.job_id}, start {wait.start}: part of its wait is unknown"
