"""The jobs of a simulated world: what is told to them, where they wait, who goes on after them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from heapq import heappush
from uuid import UUID

from attrs import define, field

from ...domain.commands import Command, Unblock
from ...domain.decide import change
from ...domain.job import Job
from ...domain.log import Change, Recorded
from ...domain.ordering import lets_go_on
from ...domain.states import ENDED, WAITING, State
from ..replay.clock import micros, moment
from .ending import lag, noise
from .history import History, Source, worst
from .slots import Pool, Ready

ENDS, CHANGES, ARRIVES, DUE = range(4)


@define(eq=False)
class Live:
    """A job of the world.

    ``seq`` is its place among jobs that are due at one time, ``runs`` counts those begun and
    ``blocks`` the jobs that it was blocked by since; with a new ``ticket`` nothing holds that
    waited under an old one.
    """

    job: Job
    seq: int
    sources: dict[UUID, Source]
    runs: int = 0
    blocks: int = 0
    ticket: int = 0
    due_at: datetime | None = None
    running: Source | None = None

    @property
    def source(self) -> Source:
        """The recorded job that it goes like."""
        return self.running or worst(self.sources.values())


@define
class Stage:
    """The jobs of a history at one moment, ``now``, and all that is still to happen.

    ``_open`` are the groups that take items, ``_lines`` the unfinished jobs by ordering key,
    ``_behind`` those that wait for another, ``_pools`` those that are due.
    """

    history: History
    now: int = 0
    _count: int = 0
    _agenda: list[tuple[int, int, int, Callable[[], None]]] = field(
        factory=list[tuple[int, int, int, Callable[[], None]]]
    )
    _log: list[Recorded] = field(factory=list[Recorded])
    _jobs: dict[UUID, Live] = field(factory=dict[UUID, Live])
    _open: dict[tuple[str, str, str | None], Live] = field(
        factory=dict[tuple[str, str, str | None], Live]
    )
    _lines: dict[str, list[Live]] = field(factory=dict[str, list[Live]])
    _behind: dict[UUID, list[Live]] = field(factory=dict[UUID, list[Live]])
    _pools: dict[tuple[str, str], Pool] = field(factory=dict[tuple[str, str], Pool])

    @property
    def at(self) -> datetime:
        """Now."""
        return moment(self.now)

    def _do(self, at: int, phase: int, action: Callable[[], None]) -> None:
        heappush(self._agenda, (max(at, self.now), phase, self._number(), action))

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _enter(self, live: Live) -> None:
        self._jobs[live.job.id] = live
        if (key := live.job.spec.ordering_key) is not None:
            self._lines.setdefault(key, []).append(live)
        self._index(live)

    def _tell(self, live: Live, command: Command) -> None:
        self._write(live, change(live.job, command))

    def _write(self, live: Live, made: Change) -> None:
        version = 0 if made.before is None else made.before.version
        for number, event in enumerate(made.events, version + 1):
            # The number of a birth is the job's place in the queue.
            event_id = live.seq if number == 1 else self._number()
            self._log.append(Recorded(made.after.id, number, event_id, 0, event))
        live.job = made.after
        self._index(live)
        job = live.job
        if job.state in ENDED:
            self._ended(live)
        elif job.blocked_by is not None:
            live.ticket, live.due_at = live.ticket + 1, None
            waiting = self._behind.setdefault(job.blocked_by, [])
            if live not in waiting:
                live.blocks += 1
                waiting.append(live)
        elif job.state in WAITING:
            self._wait(live)

    def _index(self, live: Live) -> None:
        spec = live.job.spec
        key = (spec.queue, spec.name, spec.group_key)
        if live.job.state is State.GROUPED:
            self._open[key] = live
        elif self._open.get(key) is live:
            del self._open[key]

    def _wait(self, live: Live) -> None:
        """A job waits for its time; nothing is new when it is the same as before."""
        if live.due_at == live.job.due_at:
            return
        live.due_at, live.ticket = live.job.due_at, live.ticket + 1
        ticket = live.ticket
        self._do(micros(live.job.due_at), DUE, lambda: self._due(live, ticket))

    def _due(self, live: Live, ticket: int) -> None:
        if live.ticket != ticket:
            return
        spec = live.job.spec
        pool = self._pools.setdefault((spec.queue, spec.name), Pool(spec.queue, spec.name))
        ready = Ready(-spec.priority, micros(live.job.due_at), live.seq, spec.id, ticket)
        pool.add(ready, noise(self.history, live.source, live.runs, live.blocks))

    def _ended(self, live: Live) -> None:
        if (key := live.job.spec.ordering_key) is not None and lets_go_on(live.job):
            self._lines[key].remove(live)
        go_on = lets_go_on(live.job)
        waiting = self._behind.pop(live.job.id, [])
        for each in waiting:
            if go_on or each.job.spec.after == live.job.id:
                late = lag(each.source, each.runs, each.blocks)
                self._do(self.now + late, ARRIVES, partial(self._unblock, each, live.job.id))
            else:
                self._behind.setdefault(live.job.id, []).append(each)

    def _unblock(self, live: Live, by: UUID) -> None:
        if live.job.blocked_by == by:
            self._tell(live, Unblock(self.at))
