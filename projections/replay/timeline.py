"""The runs of every worker, slot by slot: for a terminal, and for viewers of traces (Perfetto)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from heapq import heappop, heappush

from attrs import frozen

from .clock import micros
from .runs import RUNNING, Run

#: How a run that ended so is drawn, the worst last.
MARKS = {
    "completed": "=",
    RUNNING: ">",
    "released": "-",
    "retry_scheduled": "x",
    "failed": "X",
    "lease_expired": "!",
}


@frozen
class Slot:
    """A place of one worker in which one run follows another; ``number`` counts from 0."""

    worker: str
    number: int
    runs: tuple[Run, ...]


def slots(runs: Iterable[Run]) -> list[Slot]:
    """The runs by worker and slot, each in the lowest slot that was free when it began.

    The log does not tell slots; these are the fewest that the runs need.
    """
    by_worker: dict[str, list[Run]] = {}
    for run in runs:
        by_worker.setdefault(run.worker, []).append(run)
    return [
        Slot(worker, number, tuple(placed))
        for worker in sorted(by_worker)
        for number, placed in enumerate(_placed(by_worker[worker]))
    ]


def _placed(runs: list[Run]) -> list[list[Run]]:
    runs.sort(key=lambda run: (run.began, run.ended is None, run.ended or run.began))
    placed: list[list[Run]] = []
    free: list[int] = []
    busy: list[tuple[datetime, int]] = []
    for run in runs:
        while busy and busy[0][0] <= run.began:
            heappush(free, heappop(busy)[1])
        if free:
            number = heappop(free)
        else:
            number = len(placed)
            placed.append([])
        placed[number].append(run)
        if run.ended is not None:
            heappush(busy, (run.ended, number))
    return placed


def draw(slot: Slot, since: datetime, until: datetime, width: int) -> str:
    """One slot as ``width`` characters; in a cell with several runs the worst of them shows."""
    cells = [" "] * width
    begin, length = micros(since), max(1, micros(until) - micros(since))
    order = [*MARKS.values()]
    for run in slot.runs:
        ended = micros(until if run.ended is None else run.ended)
        if ended < begin or run.began > until:
            continue
        first = max(0, (micros(run.began) - begin) * width // length)
        last = min(width - 1, (ended - begin - 1) * width // length)
        mark = MARKS.get(run.end, "?")
        first = min(first, width - 1)
        for cell in range(first, max(first, last) + 1):
            there = cells[cell]
            if there not in order or order.index(there) < order.index(mark):
                cells[cell] = mark
    return "".join(cells)


def trace_events(slots: Sequence[Slot], until: datetime) -> Iterator[dict[str, object]]:
    """The slots in Chrome's trace event format: a process for each worker, a thread for each slot.

    Times are microseconds since 1970; a run that is not over goes on to ``until``.  The whole file
    is ``{"traceEvents": [...]}``.
    """
    processes: dict[str, int] = {}
    for slot in slots:
        pid, tid = processes.setdefault(slot.worker, len(processes) + 1), slot.number + 1
        if slot.number == 0:
            yield _named("process_name", pid, 0, slot.worker)
        yield _named("thread_name", pid, tid, f"slot {slot.number}")
        for run in slot.runs:
            began = micros(run.began)
            yield {
                "ph": "X",
                "name": run.name,
                "cat": run.end,
                "pid": pid,
                "tid": tid,
                "ts": began,
                "dur": max(0, micros(run.ended or until) - began),
                "args": {
                    "job": str(run.job_id),
                    "queue": run.queue,
                    "start": run.start,
                    "end": run.end,
                    "why": run.why,
                },
            }


def _named(kind: str, pid: int, tid: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
