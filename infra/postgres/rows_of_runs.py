"""The row of a running job in a transaction of its handler's, whatever driver carries it."""

from __future__ import annotations

from collections.abc import Awaitable
from uuid import UUID

from attrs import evolve as replace

from ...domain.commands import Command, Unblock
from ...domain.decide import change
from ...domain.errors import EffectRefused, StaleLease
from ...domain.events import Completed, EffectCompleted, Unblocked
from ...domain.job import Job, JobSpec
from ...domain.states import State
from ...domain.values import Outcome
from ...projections.row import format_of
from ...projections.status import summary
from ..codec import KINDS, encode
from ..documents import decode_effects, encode_effects
from . import batches
from .accept_parts import Asking, Row
from .callers import carry
from .holders import EPOCH, moment_of
from .lines import transaction_of
from .rows import numbers, texts, times, uuids
from .schema.name import Schema
from .statements import runs, summaries


class PostgresRows:
    """Implements ``app.writing.Rows``; what that promises is not said again here."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def hold(self, caller: object, job: Job, *, shared: bool = False) -> Job | Awaitable[Job]:
        """Lock the row to the end of the transaction, for oneself or ``shared``; the job now."""
        return carry(self._schema, caller, _hold(self._schema, job, shared=shared))

    def write(self, caller: object, job: Job, command: Command) -> Job | Awaitable[Job]:
        """Decide on the job as it is now, and append; the job after."""
        return carry(self._schema, caller, _write(self._schema, job, command))

    def transaction(self, caller: object) -> object | None:
        """What stands for the transaction that the caller has open; None when it has none."""
        return transaction_of(caller)


def _hold(schema: Schema, job: Job, *, shared: bool) -> Asking[Job]:
    assert job.lease is not None, "a run has a lease"
    given: dict[str, object] = {"id": str(job.id), "lease": job.lease.token}
    rows = yield runs.hold(schema, shared=shared), given
    if not rows:
        now = yield runs.current(schema), {"id": str(job.id)}
        current = now[0][0] if now else None
        raise StaleLease(job.id, "lock the row of", job.lease.token, current)
    version, effects, at, now_at = rows[0]
    newest = max(moment_of(at), moment_of(now_at))
    return replace(job, version=version, at=newest, effects=decode_effects(effects))


def _write(schema: Schema, job: Job, command: Command) -> Asking[Job]:
    held = yield from _hold(schema, job, shared=False)
    made = change(held, replace(command, at=held.at))
    if not made.events:
        return held
    assert job.lease is not None
    [event] = made.events
    row = encode(event)
    given: dict[str, object] = {
        "id": str(job.id),
        "lease": job.lease.token,
        "version": made.after.version,
        "at": row.at.isoformat(),
        "kind": row.kind,
        "data": row.data,
    }
    match event:
        case EffectCompleted():
            effects, layout = encode_effects(made.after.effects), format_of(made.after)
            yield runs.receive(schema), {**given, "effects": effects, "format": layout}
        case Completed():
            [(has_waiter,)] = yield runs.complete(schema), given
            if made.after.spec.owner is not None and (ended := summary(made.after)) is not None:
                yield summaries.keep(schema), batches.summaries([ended])
            yield from after_end(schema, made.after, has_waiter=has_waiter)
        case _:
            # It would fail as uncertain, in a transaction that says that it is done.
            uncertain = held.uncertain
            assert uncertain is not None, f"a handler does not write {event.kind}"
            seen, remedy = "it is in progress", "Complete or release it before the job"
            raise EffectRefused(job.id, uncertain.key, seen, remedy)
    return made.after


def after_end(schema: Schema, ended: Job, *, has_waiter: bool) -> Asking[None]:
    """Let those go on who waited for the job, in the same transaction and a later statement."""
    if not has_waiter:
        return
    rows = yield runs.waiting(schema), {"id": str(ended.id)}
    freed = [change(_waiting(row), Unblock(ended.at)) for row in rows]
    moved = [each.after for each in freed if each.events]
    if moved:
        yield (
            runs.let_go_on(schema),
            {
                "ids": uuids([job.id for job in moved]),
                "versions": numbers([job.version for job in moved]),
                "states": texts([job.state for job in moved]),
                "ats": times([job.at for job in moved]),
                "due_ats": times([job.due_at for job in moved]),
                "kind": KINDS[Unblocked.kind],
            },
        )


def _waiting(row: Row) -> Job:
    """A job that waits for another, as far as a decision on its going on looks at it."""
    job_id, state, version, at, due_at, held, outcome, blocked_by = row
    spec = JobSpec(UUID(job_id), "", "null", EPOCH)
    return Job(
        spec,
        State(state),
        version,
        moment_of(at),
        moment_of(due_at),
        outcome=None if outcome is None else Outcome(outcome),
        held=held,
        blocked_by=None if blocked_by is None else UUID(blocked_by),
    )
