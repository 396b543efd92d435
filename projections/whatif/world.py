"""A recorded window run anew, event by event, through the machine of the domain.

Time goes from one moment at which something happens to the next, in integer microseconds.  At one
moment runs end first, then comes what arrives, then jobs are leased: as in a tick of a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from uuid import UUID

from attrs import define, field
from attrs import evolve as replace

from ...domain.commands import Block, Command, Enqueue, Reschedule, TakeLease, Unblock
from ...domain.decide import change
from ...domain.decide.collection import collect
from ...domain.errors import IllegalTransition
from ...domain.events import ItemsJoined, Leased
from ...domain.grouping import Arrival, share_out
from ...domain.job import Job
from ...domain.log import Change, Recorded
from ...domain.ordering import lets_go_on
from ...domain.states import ENDED, WAITING, State
from ..replay.clock import micros, moment
from .ending import Endings, noise, wanted
from .history import Birth, Carried, Collected, History, Moved, Source, carried_spec, worst
from .policy import Policy
from .slots import Fleet, Pool, Ready

ENDS, CHANGES, ARRIVES, DUE = range(4)


@define(eq=False)
class Live:
    """A job of the world.  ``runs`` counts those begun, a new ``ticket`` ends all that waited."""

    job: Job
    seq: int
    sources: dict[UUID, Source]
    runs: int = 0
    ticket: int = 0
    due_at: datetime | None = None
    running: Source | None = None

    @property
    def source(self) -> Source:
        """The recorded job that it goes like."""
        return self.running or worst(self.sources.values())


@define
class World:
    """A history under a policy.  ``run`` gives the log that comes of it."""

    history: History
    policy: Policy
    now: int = 0
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
    _fleet: Fleet = field(init=False)
    _endings: Endings = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._fleet = Fleet(self.history.facts, self.policy)
        self._endings = Endings(self.history, self.policy)

    def run(self) -> list[Recorded]:
        """The log that comes of it, by job and version, whole streams from their birth on."""
        self._plan()
        until = micros(self.history.until)
        while (at := self._next()) is not None and at <= until:
            for pool in self._pools.values():
                pool.advance(at - self.now)
            self.now = at
            while self._agenda and self._agenda[0][0] <= at:
                heappop(self._agenda)[3]()
            self._dispatch()
        return sorted(self._log, key=lambda each: (each.job_id.int, each.version))

    @property
    def at(self) -> datetime:
        """Now."""
        return moment(self.now)

    def _plan(self) -> None:
        history = self.history
        begin = self.now = micros(history.since)
        for at, what, whom, number in sorted(self._fleet.changes(), key=lambda each: each[0]):
            self._do(at, CHANGES, lambda w=what, o=whom, n=number: self._fleet.change(w, o, n))
        for carried in history.carried:
            self._do(begin, ARRIVES, lambda each=carried: self._carry(each))
        for birth in history.births:
            self._do(micros(birth.at), ARRIVES, lambda each=birth: self._bear(each))
        for collected in history.collected:
            self._do(micros(collected.at), ARRIVES, lambda each=collected: self._collect(each))
        for moved in history.moved:
            self._do(micros(moved.at), ARRIVES, lambda each=moved: self._move(each))

    def _do(self, at: int, phase: int, action: Callable[[], None]) -> None:
        heappush(self._agenda, (max(at, self.now), phase, self._number(), action))

    def _number(self) -> int:
        self._count += 1
        return self._count

    _count: int = 0

    def _next(self) -> int | None:
        """The next moment at which something happens."""
        moments = [self.now + wait for pool in self._pools.values() if (wait := pool.next)]
        if self._agenda:
            moments.append(self._agenda[0][0])
        return min(moments, default=None)

    # What arrives.

    def _carry(self, carried: Carried) -> None:
        job, source = carried.job, carried.source
        live = Live(carried_spec(job, self.policy.spec(job.spec)), source.seq, {job.id: source})
        self._enter(live)
        self._log += carried.before
        if carried.running is not None and job.lease is not None:
            taken = carried.running
            live.running = replace(source, runs=(taken, *source.runs))
            live.runs = 1
            self._fleet.take(taken.worker, job.spec.queue, job.spec.name)
            if taken.length is not None:
                end = micros(taken.began) + taken.length
                self._do(end, ENDS, lambda: self._end(live, taken.worker))
        elif job.blocked_by is not None:
            self._behind.setdefault(job.blocked_by, []).append(live)
        else:
            self._wait(live)

    def _bear(self, birth: Birth) -> None:
        spec = self.policy.spec(birth.source.spec)
        behind = birth.behind if birth.behind in self._jobs else None
        born = change(None, Enqueue(self.at, spec, birth.due_at, behind))
        live = Live(born.after, birth.source.seq, {spec.id: birth.source})
        self._enter(live)
        self._write(live, born)

    def _collect(self, collected: Collected) -> None:
        arrivals = [
            Arrival(item, self.policy.spec(source.spec)) for item, source in collected.items
        ]
        sources = {item.id: source for item, source in collected.items}
        spec = arrivals[0].spec
        group = self._open.get((spec.queue, spec.name, spec.group_key))
        job = None if group is None else group.job
        opened = (each.arrivals[0].item.id for each in share_out(job, arrivals) if each.opens)
        ids = iter([self._id(sources[item_id]) for item_id in opened])
        for made in collect(job, arrivals, lambda: next(ids), self.at):
            if made.before is None:
                item_ids = next(e.item_ids for e in made.events if isinstance(e, ItemsJoined))
                source = sources[item_ids[0]]
                live = Live(made.after, source.seq, {})
                self._enter(live)
            else:
                assert group is not None
                live = group
            for event in made.events:
                for item_id in event.item_ids if isinstance(event, ItemsJoined) else ():
                    live.sources[sources[item_id].spec.id] = sources[item_id]
            self._write(live, made)

    def _id(self, source: Source) -> UUID:
        """The recorded id, for the first group that is opened by an item of the recorded one."""
        if source.spec.id not in self._jobs:
            return source.spec.id
        return UUID(int=(source.spec.id.int + self._number()) % 2**128)

    def _move(self, moved: Moved) -> None:
        live = self._jobs.get(moved.job_id)
        if live is None:
            return
        try:
            self._tell(live, Reschedule(self.at, moved.due_at))
        except IllegalTransition:
            return  # It runs already, or has ended.

    def _enter(self, live: Live) -> None:
        self._jobs[live.job.id] = live
        if (key := live.job.spec.ordering_key) is not None:
            self._lines.setdefault(key, []).append(live)
        self._index(live)

    # What happens to a job.

    def _tell(self, live: Live, command: Command) -> None:
        self._write(live, change(live.job, command))

    def _write(self, live: Live, made: Change) -> None:
        version = 0 if made.before is None else made.before.version
        for number, event in enumerate(made.events, version + 1):
            self._log.append(Recorded(made.after.id, number, self._number(), 0, event))
        live.job = made.after
        self._index(live)
        job = live.job
        if job.state in ENDED:
            self._ended(live)
        elif job.blocked_by is not None:
            live.ticket, live.due_at = live.ticket + 1, None
            waiting = self._behind.setdefault(job.blocked_by, [])
            if live not in waiting:
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
        pool.add(ready, noise(self.history, live.source, live.runs))

    def _ended(self, live: Live) -> None:
        if (key := live.job.spec.ordering_key) is not None and lets_go_on(live.job):
            self._lines[key].remove(live)
        go_on = lets_go_on(live.job)
        waiting = self._behind.pop(live.job.id, [])
        for each in waiting:
            if go_on or each.job.spec.after == live.job.id:
                self._tell(each, Unblock(self.at))
            else:
                self._behind.setdefault(live.job.id, []).append(each)

    # Who is leased.

    def _dispatch(self) -> None:
        while (found := self._first()) is not None:
            pool, live, worker = found
            heappop(pool.ready)
            live.due_at = None
            live.ticket += 1
            self._lease(live, worker)
        for pool in self._pools.values():
            pool.free = self._fleet.worker_for(pool.queue, pool.name, None) is not None

    def _first(self) -> tuple[Pool, Live, str] | None:
        """The first job in claim order that there is a slot for."""
        best: tuple[Ready, Pool, Live, str] | None = None
        for pool in self._pools.values():
            pool.let_in()
            ready = next(self._valid(pool), None)
            if ready is None or (best is not None and best[0] < ready):
                continue
            live = self._jobs[ready.job_id]
            who = wanted(live.source, live.runs)
            worker = self._fleet.worker_for(pool.queue, pool.name, who)
            if worker is not None:
                best = ready, pool, live, worker
        return None if best is None else best[1:]

    def _valid(self, pool: Pool) -> Iterator[Ready]:
        while pool.ready:
            if self._jobs[pool.ready[0].job_id].ticket == pool.ready[0].ticket:
                yield pool.ready[0]
                return
            heappop(pool.ready)

    def _lease(self, live: Live, worker: str) -> None:
        """Lease a job, unless another must end first; its run ends as the recorded one did."""
        spec = live.job.spec
        parent = None if spec.after is None else self._jobs.get(spec.after)
        failed = parent is not None and parent.job.state is State.FAILED
        behind = self._prior(live)
        if parent is not None and parent.job.state not in ENDED:
            behind = parent.job.id
        if behind is not None and not failed:
            self._tell(live, Block(self.at, behind))
            return
        source, number = live.source, live.runs
        made = change(live.job, TakeLease(self.at, worker, parent_failed=failed))
        self._write(live, made)
        if not isinstance(made.events[-1], Leased):
            return
        live.running, live.runs = source, number + 1
        self._fleet.take(worker, spec.queue, spec.name)
        length = self._endings.length(source, number)
        if length is not None:
            self._do(self.now + length, ENDS, lambda: self._end(live, worker))

    def _prior(self, live: Live) -> UUID | None:
        """The nearest earlier job of its key that is not over."""
        line = self._lines.get(live.job.spec.ordering_key or "", ())
        before = [each for each in line if each.seq < live.seq]
        return max(before, key=lambda each: each.seq).job.id if before else None

    def _end(self, live: Live, worker: str) -> None:
        spec = live.job.spec
        self._fleet.give_back(worker, spec.queue, spec.name)
        command = self._endings.command(live.source, live.runs - 1, live.job, self.at)
        self._tell(live, command)


def simulate(history: History, policy: Policy) -> list[Recorded]:
    """The log that comes of a history under a policy."""
    return World(history, policy).run()
