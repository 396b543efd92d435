"""How each driver of a caller wants a statement's parameters: the one place that translates.

Statements are written for psycopg, with ``%(name)s``; psycopg2 reads them as they are.  asyncpg has
the server number and type every parameter, and takes only Python values of that type: a list of
times that the statements carry as text is cast from text there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

#: What SQLAlchemy calls the drivers that a caller may use.
DRIVERS = ("psycopg", "psycopg_async", "psycopg2", "asyncpg")

Parameters: TypeAlias = Mapping[str, object] | tuple[object, ...]

_PLACE = re.compile(r"%\((?P<name>\w+)\)s(?P<times>::timestamptz\[\])?|%%")


def for_driver(
    driver: str, statement: str, parameters: Mapping[str, object]
) -> tuple[str, Parameters]:
    """The statement and its parameters as SQLAlchemy's driver of this name takes them."""
    return _numbered(statement, parameters) if driver == "asyncpg" else (statement, parameters)


def _numbered(statement: str, parameters: Mapping[str, object]) -> tuple[str, Parameters]:
    places: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "%"
        number = places.setdefault(name, len(places) + 1)
        return f"${number}::text[]::timestamptz[]" if found["times"] else f"${number}"

    text = _PLACE.sub(place, statement)
    return text, tuple(parameters[name] for name in places)
