"""A recorded window run anew, event by event, through the machine of the domain.

Time goes from one moment at which something happens to the next, in integer microseconds.  At one
moment runs end first, then comes what arrives, then jobs are leased: as in a tick of a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from heapq import heappop
from uuid import UUID

from attrs import define, field
from attrs import evolve as replace

from ...domain.commands import Enqueue, Reschedule, TakeLease
from ...domain.decide import change
from ...domain.decide.collection import collect
from ...domain.errors import IllegalTransition
from ...domain.events import ItemsJoined, Leased
from ...domain.grouping import Arrival, share_out
from ...domain.log import Recorded
from ...domain.states import ENDED, State
from ..replay.clock import micros
from .ending import Endings, wanted
from .history import Birth, Carried, Collected, History, Moved, Source, carried_spec
from .policy import Policy
from .slots import Fleet, Pool, Ready
from .stage import ARRIVES, CHANGES, ENDS, Live, Stage


@define
class World(Stage):
    """A history under a policy.  ``run`` gives the log that comes of it."""

    policy: Policy = field(factory=Policy)
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

    def _plan(self) -> None:
        history = self.history
        begin = self.now = micros(history.since)
        self._count = history.seq_max
        for at, what, whom, number in sorted(self._fleet.changes(), key=lambda each: each[0]):
            self._do(at, CHANGES, partial(self._fleet.change, what, whom, number))
        for carried in sorted(history.carried, key=lambda each: each.source.seq):
            self._do(begin, ARRIVES, partial(self._carry, carried))
        for birth in sorted(history.births, key=lambda each: each.source.seq):
            self._do(micros(birth.at), ARRIVES, partial(self._bear, birth))
        for collected in history.collected:
            self._do(micros(collected.at), ARRIVES, partial(self._collect, collected))
        for moved in history.moved:
            self._do(micros(moved.at), ARRIVES, partial(self._move, moved))

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
        live.blocks = carried.blocks
        self._enter(live)
        self._log += carried.before
        if job.state in ENDED:
            self._ended(live)
        elif carried.running is not None and job.lease is not None:
            taken = carried.running
            live.running = replace(source, runs=(taken, *source.runs))
            live.runs, live.blocks = 1, 0
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
        opened = [each.arrivals[0].item.id for each in share_out(job, arrivals) if each.opens]
        ids = iter(self._ids(sources[item_id] for item_id in opened))
        for made in collect(job, arrivals, lambda: next(ids), self.at):
            if made.before is None:
                item_ids = next(e.item_ids for e in made.events if isinstance(e, ItemsJoined))
                source = sources[item_ids[0]]
                own = made.after.id == source.spec.id
                live = Live(made.after, source.seq if own else self._number(), {})
                self._enter(live)
            else:
                assert group is not None
                live = group
            for event in made.events:
                for item_id in event.item_ids if isinstance(event, ItemsJoined) else ():
                    live.sources[sources[item_id].spec.id] = sources[item_id]
            self._write(live, made)

    def _ids(self, sources: Iterable[Source]) -> list[UUID]:
        """Ids of new groups: the recorded one for the first that goes back to a recorded group."""
        ids: list[UUID] = []
        for source in sources:
            own = source.spec.id
            taken = own in self._jobs or own in ids
            ids.append(UUID(int=(own.int + self._number()) % 2**128) if taken else own)
        return ids

    def _move(self, moved: Moved) -> None:
        live = self._jobs.get(moved.job_id)
        if live is None:
            return
        try:
            self._tell(live, Reschedule(self.at, moved.due_at))
        except IllegalTransition:
            return  # It runs already, or has ended.

    # Who is leased.

    def _dispatch(self) -> None:
        while (found := self._first()) is not None:
            pool, live, worker = found
            heappop(pool.ready)
            live.due_at = None
            live.ticket += 1
            self._lease(live, worker)
        for pool in self._pools.values():
            if pool.version == self._fleet.version:
                continue
            pool.version = self._fleet.version
            pool.free = self._fleet.is_free(pool.queue, pool.name)

    def _first(self) -> tuple[Pool, Live, str] | None:
        """The first job in claim order that there is a slot for."""
        best: tuple[Ready, Pool, Live, str] | None = None
        for pool in self._pools.values():
            pool.let_in()
            if not pool.ready:
                continue
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
            self._tell(live, TakeLease(self.at, worker, behind))
            return
        source, number = live.source, live.runs
        made = change(live.job, TakeLease(self.at, worker, parent_failed=failed))
        self._write(live, made)
        if not isinstance(made.events[-1], Leased):
            return
        live.running, live.runs, live.blocks = source, number + 1, 0
        self._fleet.take(worker, spec.queue, spec.name)
        length = self._endings.length(source, number)
        if length is not None:
            self._do(self.now + length, ENDS, lambda: self._end(live, worker))

    def _prior(self, live: Live) -> UUID | None:
        """The nearest earlier job of its key that is not over."""
        line = self._lines.get(live.job.spec.ordering_key or "", [live])
        place = line.index(live)
        return line[place - 1].job.id if place else None

    def _end(self, live: Live, worker: str) -> None:
        spec = live.job.spec
        self._fleet.give_back(worker, spec.queue, spec.name)
        command = self._endings.command(live.source, live.runs - 1, live.job, self.at)
        self._tell(live, command)


def simulate(history: History, policy: Policy) -> list[Recorded]:
    """The log that comes of a history under a policy."""
    return World(history, policy=policy).run()
