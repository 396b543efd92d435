"""Verify, repair and rebuild as job types of a book, so that they can be scheduled as any job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import attrs
from attrs import frozen

from ...domain.retry import Retry
from ..rebuild_ports import ClaimTable, ShadowTable
from .rebuild import Difference, Progress, repair, verify
from .run import Run
from .shadow import rebuild
from .signals import Snooze
from .typed import SingleJob

TIMEOUT_SECONDS = 86_400.0
RETRIES = 5
#: When a run goes on elsewhere that its worker's stop has ended.
AGAIN_SECONDS = 1.0
#: So many rows are named in a result.
SHOWN_MAX = 20


@frozen
class Maintenance:
    """The job types; none of them takes an argument.

    The results of ``verify`` and ``repair`` have ``rows``, how many differed, ``left``, how many
    still do, and ``shown``, the first of them; that of ``rebuild`` is a ``Rebuilt``.
    """

    verify: SingleJob[[]]
    repair: SingleJob[[]]
    rebuild: SingleJob[[]]


def maintenance(
    register: Callable[..., Any],
    table: Callable[[], ClaimTable],
    shadow: Callable[[], ShadowTable],
    queue: str,
) -> Maintenance:
    """Register the job types on ``queue``; each run opens what it works on, and closes it.

    A run that its worker's stop ends spends no attempt.  Repair and rebuild then go on where they
    were, verify begins again.
    """

    def verify_rows(run: Run) -> dict[str, object]:
        with closing(table()) as opened:
            return _summary(list(verify(opened, _going_on(run))), every=True)

    def repair_rows(run: Run) -> dict[str, object]:
        with closing(table()) as opened:
            return _summary(list(repair(opened, _going_on(run))), every=False)

    def rebuild_table(run: Run) -> dict[str, object]:
        with closing(shadow()) as opened:
            return attrs.asdict(rebuild(opened, _going_on(run)))

    def made(handler: Callable[..., object], name: str) -> Any:
        options = {"timeout": TIMEOUT_SECONDS, "retry": Retry(RETRIES), "on_exhausted": "drop"}
        return register(name=f"leasebook.{name}", queue=queue, **options)(handler)

    return Maintenance(
        made(verify_rows, "verify"), made(repair_rows, "repair"), made(rebuild_table, "rebuild")
    )


def _going_on(run: Run) -> Progress:
    """Ends the run between two chunks when its worker stops, or the lease is lost."""

    def told(events: int, total: int) -> None:
        if run.stopping or run.lost:
            raise Snooze(AGAIN_SECONDS)

    return told


def _summary(found: Sequence[Difference], *, every: bool) -> dict[str, object]:
    left = len(found) if every else sum(each.left is not None for each in found)
    shown = [attrs.asdict(each) for each in found[:SHOWN_MAX]]
    return {"rows": len(found), "left": left, "shown": shown}
