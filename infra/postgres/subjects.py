"""Asking what becomes of the work for subjects, in a caller's transaction or in one of our own."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping, Sequence
from typing import TypeAlias

from ..caller_ports import Standing
from .accept import Question, Row
from .callers import carry
from .connection import sorted_errors
from .dsn import connect
from .schema.name import Schema
from .statements import subjects

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


def _asking(schema: Schema, asked: Sequence[str]) -> Generator[Question, Sequence[Row], Standings]:
    found: dict[str, Standing] = {}
    for start in range(0, len(asked), SUBJECTS_MAX):
        part = list(asked[start : start + SUBJECTS_MAX])
        rows = yield subjects.standing(schema), {"subjects": part}
        found |= {subject: Standing(alive, held) for subject, alive, held in rows}
    return found
