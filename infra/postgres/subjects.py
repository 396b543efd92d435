"""Asking what becomes of work, in a caller's transaction or in one of our own."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeAlias, cast
from uuid import UUID

from ...domain.states import State
from ...projections.status import Status
from ...projections.status import status as status_of
from ..caller_ports import Standing
from ..codec import state_after
from .accept import Asking
from .callers import carry
from .connection import sorted_errors
from .dsn import connect
from .schema.name import Schema
from .statements import subjects, summaries

Standings: TypeAlias = Mapping[str, Standing]

#: What one statement asks at most.
SUBJECTS_MAX = 10_000


def standings(
    schema: Schema, caller: object, asked: Sequence[str]
) -> Standings | Awaitable[Standings]:
    """How the work for these subjects stands, as the caller's transaction sees it.

    Asynchronous callers get something to await.  Raises NoTransaction, CallerRefused and
    SchemaIncomplete.
    """
    return carry(schema, caller, _asking(schema, asked))


def committed_standings(schema: Schema, dsn: str, asked: Sequence[str]) -> Standings:
    """The same as everybody sees it, on a connection that is closed again.

    Raises InvalidDsn, SchemaIncomplete, and StoreUnavailable when the database does not answer.
    """
    with sorted_errors(), connect(dsn) as connection:
        answer = carry(schema, connection, _asking(schema, asked))
        assert isinstance(answer, dict)
        return answer


def status(
    schema: Schema, caller: object, job_id: UUID
) -> Status | Awaitable[Status | None] | None:
    """How a job stands for the public, as the caller's transaction sees it; None: unknown."""
    return carry(schema, caller, _asking_status(schema, job_id))


def committed_status(schema: Schema, dsn: str, job_id: UUID) -> Status | None:
    """The same as everybody sees it, on a connection that is closed again."""
    with sorted_errors(), connect(dsn) as connection:
        return cast("Status | None", carry(schema, connection, _asking_status(schema, job_id)))


def _asking_status(schema: Schema, job_id: UUID) -> Asking[Status | None]:
    [(state, kind, kept)] = yield summaries.standing(schema), {"id": str(job_id)}
    found = state_after(kind) if state is None else State(state)
    if found is not None:
        return status_of(found)
    return None if kept is None else Status(kept)


def _asking(schema: Schema, asked: Sequence[str]) -> Asking[Standings]:
    found: dict[str, Standing] = {}
    for start in range(0, len(asked), SUBJECTS_MAX):
        part = list(asked[start : start + SUBJECTS_MAX])
        rows = yield subjects.standing(schema), {"subjects": part}
        found |= {subject: Standing(alive, held) for subject, alive, held in rows}
    return found
