"""What must be true of a world in the end: the checker's invariants, and what the log cannot know.

The log says what the database believes.  Producers know what they committed, handlers know which
runs there really were, and the scheduler knows who was shaken; the log is held against all three.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING
from uuid import UUID

from leasebook.domain import ExpiryCause, Outcome, Recorded, ReleaseReason, State
from leasebook.domain.events import (
    Completed,
    Failed,
    ItemsJoined,
    Leased,
    LeaseExpired,
    Released,
    RetryScheduled,
)
from leasebook.infra.memory import MemoryLog
from leasebook.projections.check import KeptRow, Violation, check
from leasebook.projections.streams import steps

from .handlers import Effect
from .line import is_over, parents_come_first
from .lived import interrupted_is_not_repeated, waits_add_up
from .receipts import effects_are_made_once, effects_are_on_record

if TYPE_CHECKING:
    from .world import World

Streams = dict[UUID, list[Recorded]]
Runs = dict[tuple[UUID, int], list[Effect]]
INTERRUPTED = (Outcome.LOST, Outcome.ABORTED)
ENDS = (Completed, Failed, Released, RetryScheduled, LeaseExpired)

#: A lease is short here, and its worker looks at what it holds about twice as often as it ends.
UNDER_WAY_SECONDS_MAX = 0.25


def judge(world: World) -> list[str]:
    """Everything that is wrong with the world as it is now, one line each."""
    findings = [str(violation) for violation in _violations(world)]
    log = MemoryLog(world.database)
    streams: Streams = {job_id: list(log.stream(job_id)) for job_id in log.job_ids()}
    runs: Runs = defaultdict(list)
    for effect in world.script.ledger:
        runs[effect.job.id, effect.token].append(effect)
    findings += [f"crash in {who}: {error!r}" for who, error in world.scheduler.crashes]
    for rule in RULES:
        findings += [f"{rule.__name__}: {text}" for text in rule(world, streams, runs)]
    return findings


def judge_midway(world: World) -> list[str]:
    """The log in the middle, when those whom somebody has locked may still be owed their leave.

    Who ends a job waits for nobody: whom it cannot reach goes on later, or, when its worker dies of
    that, once somebody looks after those who wait for nobody.
    """
    blockers = {row.spec.id: row.state.blocked_by for row in world.database.jobs()}
    owed = {job for job, by in blockers.items() if by is not None and by not in blockers}
    return [
        str(each)
        for each in _violations(world)
        if each.invariant != "I8" or each.events or each.job_id not in owed
    ]


def _violations(world: World) -> Iterator[Violation]:
    """What the one checker says of the log and the rows."""
    log = MemoryLog(world.database)
    everything = (each for job_id in log.job_ids() for each in log.stream(job_id))
    rows = {
        row.spec.id: KeptRow(row.seq, (row.spec, row.state), row.has_waiter)
        for row in world.database.jobs()
    }
    yield from check(everything, rows)


Rule = Callable[["World", Streams, Runs], Iterator[str]]


def committed_is_there(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """Every committed job and item is there once, and nothing of what was rolled back."""
    items: Counter[int] = Counter()
    said: dict[int, str] = {}
    for stream in streams.values():
        for each in stream:
            if isinstance(each.event, ItemsJoined):
                items.update(each.event.item_ids)
                said.update(zip(each.event.item_ids, each.event.items, strict=True))
    inbox = set(world.database.hub.tables.inbox)
    jobs = {job_id for job_id, stream in streams.items() if stream[0].event.spec.group is None}  # type: ignore[union-attr]
    for batch in world.batches:
        for order, receipt in batch.orders:
            wanted = 1 if batch.committed else 0
            if receipt.id is not None:
                if not receipt.created:
                    # It stands for this order if the order counts, whoever made it.
                    if batch.committed and receipt.id not in streams:
                        yield f"job {receipt.id}, which was to stand for another, is not there"
                    continue
                if (receipt.id in streams) != batch.committed:
                    yield f"job {receipt.id} of a transaction {batch.session.ended}"
                jobs.discard(receipt.id)
                continue
            number = receipt.item_id or 0
            if items[number] + (number in inbox) != wanted:
                yield f"item {number} of a transaction {batch.session.ended}: {items[number]} times"
            elif number in said and said[number] != order.spec.args:
                yield f"item {number} is another"
    if jobs:
        yield f"{len(jobs)} jobs that nobody enqueued"


def one_job_for_a_request(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """However often a request was made, whatever its tries were answered, it is one job."""
    answers: dict[str, set[UUID | None]] = defaultdict(set)
    for batch in world.batches:
        for order, receipt in batch.orders:
            if order.idempotency_key is not None and batch.committed:
                answers[order.idempotency_key].add(receipt.id)
    for request, ids in answers.items():
        if len(ids) > 1:
            yield f"{request} became {len(ids)} jobs"


def ended(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """Every job has come to an end, but those that must wait for a held one of their key."""
    rows = world.database.hub.tables.jobs
    for job_id, row in rows.items():
        if not is_over(rows, row):
            yield f"job {job_id} is {row.state.state}, blocked by {row.state.blocked_by}"


def runs_have_leases(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """Every run stands on a committed lease of its own, of its worker."""
    for (job_id, token), effects in runs.items():
        stream = streams.get(job_id, [])
        event = stream[token - 1].event if 0 < token <= len(stream) else None
        if not isinstance(event, Leased) or event.worker != effects[0].worker:
            yield f"job {job_id} ran under lease {token}, which is none"
        if len(effects) > 1:
            yield f"job {job_id} ran {len(effects)} times under lease {token}"


def answers_are_true(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """What the log says of a run is what the run did."""
    for job_id, stream in streams.items():
        for each in stream:
            event = each.event
            token = getattr(event, "lease", None)
            run = runs.get((job_id, token), [None])[0] if token is not None else None
            ending = None if run is None else run.ending
            match event:
                case Completed() if ending != "done":
                    yield f"job {job_id}: completed by a run under lease {token} that {ending}"
                case Failed(outcome=Outcome.EXHAUSTED | Outcome.REJECTED) | RetryScheduled() if (
                    run is None or ending == "done"
                ):
                    yield f"job {job_id}: failed under lease {token}, the run {ending}"
                case Released(reason=ReleaseReason.NEVER_STARTED) if run is not None:
                    yield f"job {job_id}: lease {token} is said never to have started"
                case _:
                    pass


def acknowledged_survives(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """What a worker was told is settled stands in the log, under its lease."""
    for change in world.acknowledged:
        wanted = change.events[-1]
        token = getattr(wanted, "lease", None)
        kinds = [
            each.event.kind
            for each in streams.get(change.after.id, [])
            if getattr(each.event, "lease", None) == token
        ]
        if wanted.kind not in kinds:
            yield f"job {change.after.id}: {wanted.kind} under lease {token} is not in the log"


def no_overlap(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """I4 from outside: of all runs of a job one at a time is under a valid lease."""
    valid: dict[UUID, list[tuple[float, float]]] = defaultdict(list)
    for (job_id, token), effects in runs.items():
        over = _lease_end(world, streams.get(job_id, []), token)
        for effect in effects:
            if effect.began < min(effect.over, over):
                valid[job_id].append((effect.began, min(effect.over, over)))
    for job_id, spans in valid.items():
        for one, two in pairwise(sorted(spans)):
            if two[0] < one[1]:
                yield f"job {job_id} ran twice at second {two[0]:.3f}"


def _lease_end(world: World, stream: list[Recorded], token: int) -> float:
    for each in stream[token:]:
        if isinstance(each.event, ENDS) and each.event.lease == token:
            return world.server.times[each.xid]
    return float("inf")


def burials_are_just(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """Nobody declares a worker dead whose heart beat, and the dead lease nothing any more."""
    dead: dict[str, int] = {}
    for line in world.database.audit():
        evidence = line.evidence
        if evidence.kind == "worker_died" and evidence.worker is not None:
            dead[evidence.worker] = world.server.commits[line.xid]
            if evidence.worker not in world.unobserved:
                yield f"{evidence.worker} was declared dead and was not"
    for job_id, stream in streams.items():
        for each in stream:
            event = each.event
            if isinstance(event, Leased):
                buried = dead.get(event.worker)
                if buried is not None and world.server.commits[each.xid] > buried:
                    yield f"job {job_id} was leased to {event.worker} after its death"
            if isinstance(event, LeaseExpired) and event.cause is ExpiryCause.WORKER_LOST:
                holder = stream[event.lease - 1].event
                if isinstance(holder, Leased) and holder.worker not in dead:
                    yield f"job {job_id} was taken from {holder.worker}, which lives"


def suspects_run_alone(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """A job that was interrupted starts beside no other such job that is young in its worker."""
    young = world.settings.suspect_seconds
    by_worker: dict[str, list[Effect]] = defaultdict(list)
    for effect in world.script.ledger:
        if effect.suspect:
            by_worker[effect.worker].append(effect)
    for effects in by_worker.values():
        for place, one in enumerate(effects):
            for two in effects[place + 1 :]:
                first, second = sorted(
                    (one, two), key=lambda each: _leased_at(world, streams, each)
                )
                if first.job.lease is None or second.job.lease is None:
                    continue
                gap = second.job.lease.started_at - first.job.lease.started_at
                over = min(
                    first.over, _lease_end(world, streams.get(first.job.id, []), first.token)
                )
                if gap.total_seconds() < young and over > _leased_at(world, streams, second):
                    yield f"jobs {first.job.id} and {second.job.id} ran beside each other"


def _leased_at(world: World, streams: Streams, effect: Effect) -> float:
    stream = streams.get(effect.job.id, [])
    if effect.token > len(stream):
        return effect.began
    return world.server.times[stream[effect.token - 1].xid]


def nothing_expired_runs(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """A job whose time is over while it waits for its first chance is not run any more."""
    for job_id, stream in streams.items():
        for step in steps(stream):
            before, each = step.before, step.recorded
            if not isinstance(each.event, Leased) or before is None:
                continue
            expires = None if before.state is State.RETRY_WAIT else before.spec.expires_at
            if expires is not None and each.at >= expires:
                yield f"job {job_id} was leased at {each.at}, it expired at {expires}"


def leases_are_used(world: World, streams: Streams, runs: Runs) -> Iterator[str]:
    """A lease that ended by time, unused, had a worker in trouble."""
    if world.upset:
        return
    for job_id, stream in streams.items():
        for each in stream:
            event = each.event
            lost = isinstance(event, Failed) and event.outcome in INTERRUPTED
            if not (lost or isinstance(event, LeaseExpired)) or event.lease is None:  # type: ignore[union-attr]
                continue
            token = event.lease  # type: ignore[union-attr]
            holder = stream[token - 1].event
            if not isinstance(holder, Leased) or (job_id, token) in runs:
                continue
            under_way = world.server.times[stream[token - 1].xid] - world.second(holder.at)
            if under_way > UNDER_WAY_SECONDS_MAX:
                continue  # Its worker had looked for what was committed before this was.
            if holder.worker.partition("#")[0] not in world.shaken:
                yield f"job {job_id}: lease {token} of {holder.worker} ended and was never used"


RULES: tuple[Rule, ...] = (
    committed_is_there,
    one_job_for_a_request,
    ended,
    parents_come_first,
    runs_have_leases,
    answers_are_true,
    acknowledged_survives,
    no_overlap,
    burials_are_just,
    suspects_run_alone,
    nothing_expired_runs,
    leases_are_used,
    interrupted_is_not_repeated,
    waits_add_up,
    effects_are_made_once,
    effects_are_on_record,
)
