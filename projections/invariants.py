"""What must hold for every stream by itself, each rule a small function with its sentence.

A rule takes the steps of one life and yields what breaks it: a text for people and the fewest
events that show it.  The rules judge the log without ``decide``, which wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TypeAlias

from ..domain.events import (
    Completed,
    EffectCompleted,
    EffectReleased,
    EffectStarted,
    Enqueued,
    Event,
    Failed,
    GroupClosed,
    Heartbeat,
    ItemsJoined,
    Leased,
    LeaseExpired,
    Released,
    RetryScheduled,
)
from ..domain.job import Job
from ..domain.log import Recorded
from ..domain.states import TRANSITIONS, WAITING
from ..domain.values import (
    ALWAYS_HELD,
    HOLDING,
    ExpiryCause,
    OnExhausted,
    OnExpired,
    Outcome,
    ReleaseReason,
)
from .effects import receipts
from .streams import Finding, Step

Rule: TypeAlias = Callable[[Sequence[Step]], Iterator[Finding]]

INVARIANTS: dict[str, str] = {
    "I1": "The versions of a job are 1 to n without gap or fork, its time never runs backwards.",
    "I2": "A job makes only the moves of the transition table, from its birth to one end.",
    "I3": "Lease tokens and start numbers of a job strictly increase.",
    "I4": "One lease of a job is valid at a time, never renewed past the time-out of its run.",
    "I5": "Every event that a worker caused carries the token of the lease in force.",
    "I6": "A lease ends exactly once.",
    "I8": "Jobs of one ordering key run one at a time, in the order of their acceptance.",
    "I9": "Nothing starts before it is due or while blocked, nor ends by time before its time.",
    "I10": "At most retries + 1 runs are counted; a job is exhausted or lost when they are spent.",
    "I11": "At the end of the log one unfinished or held job of a queue has a unique key at most.",
    "I13": "The claim table is the fold of the log: rows for unfinished and held jobs, no other.",
    "I18": "A group keeps within its size and hold, and no item is out of order or twice.",
    "I19": "A job of a type that aborts waits for no other run once one was interrupted.",
    "I20": "An effect is begun once, then ended; a run that leaves one in progress is uncertain.",
}


def versions(life: Sequence[Step]) -> Iterator[Finding]:
    """I1: versions 1 to n, time never backwards."""
    expected, last = 1, None
    for step in life:
        here = step.recorded
        shown = (here,) if last is None else (last, here)
        if here.version != expected:
            yield f"version {here.version} stands where {expected} belongs", shown
        if last is not None and here.at < last.at:
            yield f"version {here.version} is {last.at - here.at} older than the one before", shown
        expected, last = here.version + 1, here


def moves(life: Sequence[Step]) -> Iterator[Finding]:
    """I2: only moves of the table; as none leaves an end, there is only one end."""
    for last, step in zip((None, *life), life, strict=False):
        source = None if step.before is None else step.before.state
        kind = step.recorded.event.kind
        if (source, step.after.state) not in TRANSITIONS[kind]:
            shown = (step.recorded,) if last is None else (last.recorded, step.recorded)
            yield f"{kind} cannot come when the job is {source or 'not there'}", shown


def tokens(life: Sequence[Step]) -> Iterator[Finding]:
    """I3: tokens and start numbers strictly increase."""
    last: Recorded | None = None
    for step in life:
        here, event = step.recorded, step.recorded.event
        if not isinstance(event, Leased):
            continue
        shown = (here,) if last is None else (last, here)
        if last is not None and here.version <= last.version:
            yield f"lease {here.version} came after lease {last.version}", shown
        starts = 0 if step.before is None else step.before.starts
        if event.start != starts + 1:
            yield f"start {event.start} came after {starts} starts", shown
        last = here


def one_lease(life: Sequence[Step]) -> Iterator[Finding]:
    """I4: no lease beside another, none renewed past the time-out."""
    last: Recorded | None = None
    for step in life:
        before, here, event = step.before, step.recorded, step.recorded.event
        lease = None if before is None else before.lease
        if isinstance(event, Leased):
            if lease is not None and last is not None:
                yield f"lease {here.version} began while lease {lease.token} held", (last, here)
            last = here
        elif isinstance(event, Heartbeat) and last is not None:
            deadline = None if before is None else before.deadline
            if deadline is not None and event.lease_until > deadline:
                yield f"lease {event.lease} was renewed past its time-out", (last, here)


def token_of(event: Event) -> int | None:
    """The token that an event of a worker carries, None for events that need none."""
    match event:
        case Heartbeat() | Released() | RetryScheduled() | LeaseExpired() | Completed() | Failed():
            return event.lease
        case EffectStarted() | EffectCompleted() | EffectReleased():
            return event.lease
        case _:
            return None


def fenced(life: Sequence[Step]) -> Iterator[Finding]:
    """I5: the token is that of the lease in force; a leased job ends under its token only."""
    last: Recorded | None = None
    for step in life:
        here, lease = step.recorded, None if step.before is None else step.before.lease
        held, token = None if lease is None else lease.token, token_of(here.event)
        ends_leased = isinstance(here.event, Failed) and held is not None
        if (token is not None or ends_leased) and token != held:
            shown = (here,) if last is None else (last, here)
            yield f"{here.event.kind} under lease {token} while lease {held} was in force", shown
        if isinstance(here.event, Leased):
            last = here


#: Events of a worker after which its lease is still in force.
LEASE_GOES_ON = frozenset(
    each.kind for each in (Heartbeat, EffectStarted, EffectCompleted, EffectReleased)
)


def ended_once(life: Sequence[Step]) -> Iterator[Finding]:
    """I6: each lease ends once; the newest may still run."""
    leased: dict[int, Recorded] = {}
    ended: dict[int, Recorded] = {}
    for step in life:
        here, token = step.recorded, token_of(step.recorded.event)
        if isinstance(here.event, Leased):
            leased[here.version] = here
        elif token is not None and here.event.kind not in LEASE_GOES_ON:
            if token in ended:
                yield f"lease {token} ended twice", (ended[token], here)
            ended[token] = here
    running = life[-1].after.lease if life else None
    for token, here in leased.items():
        if token not in ended and (running is None or running.token != token):
            yield f"lease {token} never ended, yet the job went on", (here, life[-1].recorded)


def in_time(life: Sequence[Step]) -> Iterator[Finding]:
    """I9: no start before due, no expiry by time before its time."""
    for last, step in pairwise(life):
        event, job = step.recorded.event, last.after
        shown = (last.recorded, step.recorded)
        match event:
            case Leased() if job.blocked_by is not None:
                yield f"it started while it was blocked by job {job.blocked_by}", shown
            case Leased() if job.state in WAITING and event.at < job.due_at:
                yield f"it started {job.due_at - event.at} before it was due", shown
            case LeaseExpired(cause=ExpiryCause.LEASE_ENDED) if event.at < job.due_at:
                yield f"its lease was ended {job.due_at - event.at} early", shown
            case Failed(outcome=Outcome.EXPIRED):
                expires = job.spec.expires_at
                if expires is None or event.at < expires:
                    yield f"it expired at {event.at}, its time was {expires}", shown
            case _:
                pass


def budget(life: Sequence[Step]) -> Iterator[Finding]:
    """I10: counted runs within retries + 1, failure for want of them when they are spent."""
    spent: list[Recorded] = []
    for step in life:
        here, event, job = step.recorded, step.recorded.event, step.after
        if not _counts(event):
            continue
        spent.append(here)
        most = job.spec.policy.retries + 1
        count = f"{len(spent)} of {most} attempts"
        if job.attempts != len(spent):
            yield f"{count} are spent, the fold counts {job.attempts}", (here,)
        if not isinstance(event, Failed):
            if len(spent) >= most:
                yield f"another run is due though {count} are spent", tuple(spent[-2:])
        elif event.outcome in (Outcome.EXHAUSTED, Outcome.LOST) and len(spent) != most:
            yield f"it failed as {event.outcome} when {count} were spent", (here,)
    for step in life:
        if isinstance(step.recorded.event, Failed) and step.after.held != _holds(step.after):
            yield "held and its outcome do not agree", (step.recorded,)


def _counts(event: Event) -> bool:
    if isinstance(event, Failed):
        return event.lease is not None
    return isinstance(event, RetryScheduled | LeaseExpired)


def _holds(job: Job) -> bool:
    held = job.outcome in HOLDING and job.spec.policy.on_exhausted is OnExhausted.HOLD
    return held or job.outcome in ALWAYS_HELD


def group_bounds(life: Sequence[Step]) -> Iterator[Finding]:
    """I18: size, hold and order of a group."""
    newest: int | None = None
    for step in life:
        here, event, job = step.recorded, step.recorded.event, step.after
        group, limit = job.spec.group, job.spec.hold_until
        if group is None or not isinstance(event, Enqueued | ItemsJoined | GroupClosed):
            continue
        # A group that is collected after its hold is due at once.
        if limit is None or event.due_at > max(limit, event.at):
            yield f"it is due at {event.due_at}, held at most until {limit}", (here,)
        if not isinstance(event, ItemsJoined):
            continue
        if len(job.items) > group.max_size:
            yield f"{len(job.items)} items in a group of at most {group.max_size}", (here,)
        if not len(event.items) == len(event.item_ids) == len(event.arrived):
            yield "items, ids and times of arrival do not match one to one", (here,)
        for item in event.item_ids:
            if newest is not None and item <= newest:
                yield f"item {item} came after item {newest}", (here,)
            newest = item
        if newest is not None and limit is not None and len(job.items) == len(event.items):
            first = min(event.arrived)
            if limit - first > timedelta(seconds=group.max_hold):
                yield f"it is held {limit - first} after its first item", (here,)


def aborts(life: Sequence[Step]) -> Iterator[Finding]:
    """I19: after an interruption a type that aborts ends, and no other is aborted."""
    for step in life:
        here, event = step.recorded, step.recorded.event
        if step.after.spec.policy.on_expired is not OnExpired.ABORT:
            if isinstance(event, Failed) and event.outcome is Outcome.ABORTED:
                yield "it was aborted, and its type is to be run again", (here,)
        elif isinstance(event, LeaseExpired) or (
            isinstance(event, Released) and event.reason is ReleaseReason.SHUTDOWN
        ):
            yield "its run was interrupted, and it waits for another", (here,)


RULES: tuple[tuple[str, Rule], ...] = (
    ("I1", versions),
    ("I2", moves),
    ("I3", tokens),
    ("I4", one_lease),
    ("I5", fenced),
    ("I6", ended_once),
    ("I9", in_time),
    ("I10", budget),
    ("I18", group_bounds),
    ("I19", aborts),
    ("I20", receipts),
)
