"""Reading a log as the history of a window."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate
from statistics import median_low
from uuid import UUID

from attrs import evolve as replace

from ...domain import events as e
from ...domain.commands import Item
from ...domain.states import ENDED
from ..replay.capacity import Capacity
from ..replay.clock import micros
from ..replay.facts import Facts, WorkerFacts
from ..replay.runs import Run, runs_of
from ..replay.stints import Stints
from ..replay.timeline import slots
from ..replay.waiting import Cause, Pending, Piece, waits_of
from ..replay.waits import add_runs, without_pauses
from ..streams import Step
from .history import Birth, Carried, Collected, History, Moved, Source, Taken


def read(
    lives: Iterable[Sequence[Step]], facts: Facts, since: datetime, until: datetime
) -> History:
    """The history of a window: ``lives`` are those that it concerns, whole, up to its end.

    They are gone through several times, so they are no iterator.
    """
    facts = _with_strangers(facts, (run for life in lives for run in runs_of(life)))
    facts = _with_overlaps(facts, (run for life in lives for run in runs_of(life)))
    stints = Stints()
    for life in lives:
        add_runs(stints, life)
    reader = _Reader(facts, Capacity(facts, stints), since, until)
    reader.ends = {
        life[-1].after.id: life[-1].recorded.at for life in lives if life[-1].after.state in ENDED
    }
    for life in lives:
        reader.read(life)
    return reader.history()


def _with_strangers(facts: Facts, runs: Iterable[Run]) -> Facts:
    """The facts with those workers, too, of whose start nothing is known but what they ran."""
    placed = slots(run for run in runs if run.worker not in facts.workers)
    workers = dict(facts.workers)
    for slot in placed:
        own = [run for other in placed if other.worker == slot.worker for run in other.runs]
        queues = frozenset(run.queue for run in own)
        number = sum(other.worker == slot.worker for other in placed)
        began = min(run.began for run in own)
        workers[slot.worker] = WorkerFacts(slot.worker, slot.worker, queues, number, began)
    return Facts(workers, facts.paused, facts.limits, facts.refused)


def _with_overlaps(facts: Facts, runs: Iterable[Run]) -> Facts:
    """The facts with as many slots of each worker as it has ever used at once.

    A busy worker leases beside the runs whose end it is recording, and the log does not tell those
    from runs that go on.
    """
    # Twice the moment, and one more where a run begins: at one moment others end first.
    moments: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for run in runs:
        moments[run.worker].append(2 * micros(run.began) + 1)
        if run.ended is not None:
            moments[run.worker].append(2 * micros(run.ended))
    workers = dict(facts.workers)
    for worker, marks in moments.items():
        most = max(accumulate(1 if mark % 2 else -1 for mark in sorted(marks)))
        known = workers[worker]
        workers[worker] = replace(known, capacity=max(known.capacity, most))
    return Facts(workers, facts.paused, facts.limits, facts.refused)


class _Reader:
    """Takes lives in, one after the other."""

    def __init__(self, facts: Facts, capacity: Capacity, since: datetime, until: datetime) -> None:
        self.facts, self.capacity = facts, capacity
        self.since, self.until = since, until
        self.ends: dict[UUID, datetime] = {}
        self.births: list[Birth] = []
        self.moved: list[Moved] = []
        self.carried: list[Carried] = []
        self.seq_max = 0
        self.noise: defaultdict[str, list[int]] = defaultdict(list)
        self.lengths: defaultdict[str, list[int]] = defaultdict(list)
        self.later: defaultdict[str, list[bool]] = defaultdict(list)
        self._items: defaultdict[tuple[object, ...], list[tuple[Item, Source]]] = defaultdict(list)

    def read(self, life: Sequence[Step]) -> None:
        """Take in one life."""
        first = life[0]
        self.seq_max = max(self.seq_max, *(step.recorded.event_id for step in life))
        runs = self._runs(life)
        own = tuple(run for run in runs if run.began >= self.since)
        spec = first.after.spec
        seq = first.recorded.event_id if spec.sequence is None else spec.sequence
        patience = [self._noise(each) for each in waits_of(life, self.until) if each.worker is None]
        source = Source(spec, seq, own, patience[0] if patience else None)
        before = [step for step in life if step.recorded.at < self.since]
        if before:
            self._carry(before, source, runs[: len(runs) - len(own)])
        elif source.spec.group is None:
            born = first.recorded.event
            assert isinstance(born, e.Enqueued)
            self.births.append(Birth(born.at, source, born.due_at, born.blocked_by))
        for step in life[len(before) :]:
            self._arrive(step, source)

    def history(self) -> History:
        """What was taken in."""
        keys = sorted(self._items, key=lambda key: (key[0], self._items[key][0][0].id))
        return History(
            self.since,
            self.until,
            self.facts,
            self.births,
            [Collected(_at(key), tuple(sorted(self._items[key], key=_id))) for key in keys],
            self.moved,
            self.carried,
            self.seq_max,
            {name: median_low(numbers) for name, numbers in self.noise.items()},
            {name: median_low(numbers) for name, numbers in self.lengths.items()},
            {name: sum(ended) / len(ended) for name, ended in self.later.items()},
        )

    def _carry(self, before: Sequence[Step], source: Source, runs: Sequence[Taken]) -> None:
        job = before[-1].after
        if job.state in ENDED and not job.held:
            return
        running = runs[-1] if job.lease is not None else None
        stream = tuple(step.recorded for step in before)
        self.carried.append(Carried(stream, job, source, running, _blocks(before)))

    def _arrive(self, step: Step, source: Source) -> None:
        event, spec = step.recorded.event, source.spec
        if isinstance(event, e.Rescheduled):
            self.moved.append(Moved(event.at, spec.id, event.due_at))
        elif isinstance(event, e.ItemsJoined):
            key = (event.at, spec.queue, spec.name, spec.group_key)
            for item_id, at, args in zip(event.item_ids, event.arrived, event.items, strict=True):
                self._items[key].append((Item(item_id, at, args, spec.sequence), source))

    def _runs(self, life: Sequence[Step]) -> list[Taken]:
        ends = [
            step.recorded.event
            for step in life
            if step.before is not None and step.before.lease and step.after.lease is None
        ]
        lags = self._lags(life)
        taken: list[Taken] = []
        pending = [each for each in waits_of(life) if each.worker is not None]
        for number, (wait, run) in enumerate(zip(pending, runs_of(life), strict=False)):
            end = ends[number] if number < len(ends) else None
            length = None if run.ended is None else micros(run.ended) - micros(run.began)
            taken.append(Taken(run.worker, run.began, self._noise(wait), lags[number], length, end))
            self._learn(run, taken[-1], number)
        return taken

    def _learn(self, run: Run, taken: Taken, number: int) -> None:
        self.noise[run.name].append(taken.noise[-1])
        if taken.length is not None:
            self.lengths[run.name].append(taken.length)
            if number and run.end in ("completed", "failed", "retry_scheduled"):
                self.later[run.name].append(run.end == "completed")

    def _lags(self, life: Sequence[Step]) -> list[tuple[int, ...]]:
        """For each run, how long after the end of each job before it its turn was noticed."""
        found: list[tuple[int, ...]] = []
        lags: list[int] = []
        for step in life:
            event, before = step.recorded.event, step.before
            if isinstance(event, e.Unblocked) and before is not None:
                ended = self.ends.get(before.blocked_by or before.id, event.at)
                lags.append(max(0, micros(event.at) - micros(ended)))
            elif isinstance(event, e.Leased):
                found.append(tuple(lags))
                lags = []
        return found

    def _noise(self, wait: Pending) -> tuple[int, ...]:
        """How long the job was ready beside a free slot, before and after each block."""
        noise = [0]
        for piece in wait.pieces:
            if piece.cause is None:
                noise[-1] += self._free(wait, piece)
            elif piece.cause is Cause.BLOCKED:
                noise.append(0)
            else:
                noise[-1] = 0
        return tuple(noise)

    def _free(self, wait: Pending, piece: Piece) -> int:
        pauses, begin = self.facts.paused.get(wait.queue, ()), micros(self.since)
        if piece.until <= begin:
            return 0
        parts = without_pauses(pauses, max(piece.since, begin), piece.until)
        return sum(
            self.capacity.split(wait.queue, wait.name, since, until).free
            for paused, since, until in parts
            if not paused
        )


def _blocks(life: Sequence[Step]) -> int:
    blocks = 0
    for step in life:
        if isinstance(step.recorded.event, e.Leased):
            blocks = 0
        elif step.after.blocked_by is not None and step.after.blocked_by != (
            None if step.before is None else step.before.blocked_by
        ):
            blocks += 1
    return blocks


def _at(key: tuple[object, ...]) -> datetime:
    at = key[0]
    assert isinstance(at, datetime)
    return at


def _id(pair: tuple[Item, Source]) -> int:
    return pair[0].id
