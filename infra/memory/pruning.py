"""Pruning in memory: whole streams of old jobs that are over, with their summaries instead."""

from __future__ import annotations

from datetime import timedelta

from ...domain.evolve import fold
from ...projections.status import summary
from .reading import recorded
from .session import Session


def prune(session: Session, older_than: timedelta) -> int:
    """Take out the streams of jobs that ended so long ago; how many there were."""
    cut_off = session.read_time() - older_than
    pruned = 0
    for job_id in tuple(session.hub.tables.events):
        job = fold(each.event for each in recorded(job_id, session.events.get(job_id) or ()))
        ended = None if job is None else summary(job)
        if ended is None or ended.at >= cut_off or session.jobs.get(job_id) is not None:
            continue
        session.events.remove(job_id)
        session.summaries.put(job_id, ended)
        pruned += 1
    return pruned
