"""The lines that a worker logs: one for each fact, nothing for a plain success."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...domain.events import Completed, Event, Failed, LeaseExpired, Released, RetryScheduled
from ...domain.job import Job
from ...domain.log import Change
from ...domain.values import HOLDING, Outcome
from ..app.logs import Logger

if TYPE_CHECKING:
    # The heartbeat child logs too, and settles nothing.
    from .settle import Settled

IMPORTANT = "[IMPORTANT] Failed on job"
ABORTED = "job aborted"


log = Logger("leasebook.worker")


def log_changes(changes: Iterable[Change]) -> None:
    """The lines for what a committed transaction ended: nothing for a plain success."""
    plain_too = log.is_enabled_for(logging.DEBUG)
    for each in changes:
        event = each.events[-1]
        if plain_too or type(event) is not Completed:
            _log_end(each.after, event)


def _log_end(job: Job, event: Event) -> None:
    facts: dict[str, object] = {"job": str(job.id), "name": job.spec.name}
    match event:
        case Failed():
            attempts = f"{job.attempts}/{job.spec.policy.retries + 1}"
            facts.update(attempts=attempts, outcome=event.outcome, error=event.error)
            if event.held or event.outcome in HOLDING:
                log.error(IMPORTANT, **facts)
            elif event.outcome is Outcome.ABORTED:
                log.error(ABORTED, **facts)
            else:
                log.warning("job failed", **facts)
        case RetryScheduled():
            log.warning(
                "run failed", attempt=job.attempts, due=job.due_at, error=event.error, **facts
            )
        case LeaseExpired():
            log.warning("lease expired", attempt=job.attempts, cause=event.cause, **facts)
        case Released():
            log.info("job given back", reason=event.reason, due=job.due_at, **facts)
        case _:
            log.debug(event.kind, **facts)


def log_settled(settled: Settled) -> None:
    """The lines for what came of the ends of runs, late results among them."""
    log_changes(settled.changes)
    for report in settled.unrecorded:
        log.error(
            "end of run cannot be recorded; its lease will end by time",
            job=str(report.job.id),
            name=report.job.spec.name,
        )
    for refusal in settled.refused:
        entry = refusal.entry
        log.warning(
            "late result refused",
            job=str(entry.job.id),
            name=entry.job.spec.name,
            answer=refusal.said,
            lease=refusal.error.token,
            current=refusal.error.current,
        )


def log_locked(jobs: Iterable[Job]) -> None:
    """The lines for runs whose end or effects cannot be recorded yet."""
    for job in jobs:
        log.warning("run waits for its own row", job=str(job.id), name=job.spec.name)


def log_key_in_use(key: str) -> None:
    """The line for an ordering key whose jobs wait for somebody's transaction."""
    log.warning("jobs wait for an open transaction of a producer", ordering_key=key)
