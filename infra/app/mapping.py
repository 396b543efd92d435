"""How the columns of somebody's queue table become jobs: the map file, and nothing that waits.

A map is TOML.  Whatever a job has is taken from a column (``name = "task"``) or is the same for
all rows (``name = { value = "send_mail" }``).  Everything is checked: the map against itself when
it is read, then against the table's columns and the registered job types, and each row against the
job type that it names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any, TypeAlias, cast
from zoneinfo import ZoneInfo

from attrs import frozen

from ...domain.errors import InvalidValue
from ..import_ports import Reading
from .errors import UnknownName, suggestion
from .registry import JobType

Table: TypeAlias = Mapping[str, object]

#: What a map may hold: taken from columns, SQL conditions, lists of columns, tables of old to new.
FROM_COLUMNS = ("name", "due", "priority", "queue", "group_key", "label", "owner", "subject")
CONDITIONS = ("where", "finished")
COLUMN_LISTS = ("key", "order")
WORDS = ("names", "queues", "priorities")
KNOWN = frozenset({*FROM_COLUMNS, *CONDITIONS, *COLUMN_LISTS, *WORDS, "args", "timezone"})
#: In ``priorities``: every value that is not named.
ANY = "*"
NAIVE = ("timestamp without time zone", "date")


@frozen
class Source:
    """Where a value comes from: a column, or with ``column`` None the constant ``value``."""

    column: str | None
    value: object = None


@frozen
class TableMap:
    """A map that has been read.

    ``reading`` holds two conditions on a row: it waits to be run, and it is over; one that is
    neither was begun and not ended.  ``args`` is one source of the whole document, or one of each
    argument.
    """

    name: Source
    args: Source | Mapping[str, Source]
    fields: Mapping[str, Source]
    reading: Reading
    names: Mapping[str, str]
    queues: Mapping[str, str]
    priorities: Mapping[str, int]
    timezone: ZoneInfo | None


def read_map(text: str) -> TableMap:
    """The map that ``text`` holds.  Raises InvalidValue with the path of what was refused."""
    try:
        given: Table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue("map", f"a text that is not TOML ({error})", "mend it") from None
    for word in given:
        if word not in KNOWN:
            raise InvalidValue(f"map.{word[:60]}", "an unknown entry", suggestion(word, KNOWN))
    if "name" not in given:
        raise InvalidValue(
            "map.name", "a missing entry", 'say name = "column" or name = { value = "job" }'
        )
    fields = {
        word: _source(f"map.{word}", given[word])
        for word in FROM_COLUMNS
        if word in given and word != "name"
    }
    name, args = _source("map.name", given["name"]), _args(given.get("args", {}))
    listed = [args] if isinstance(args, Source) else list(args.values())
    sources = (name, *listed, *fields.values())
    return TableMap(
        name=name,
        args=args,
        fields=fields,
        reading=Reading(
            key=_columns(given, "key"),
            order=_columns(given, "order"),
            columns=tuple(dict.fromkeys(each.column for each in sources if each.column)),
            where=_condition(given, "where", "true"),
            finished=_condition(given, "finished", "false"),
        ),
        names=_words(given, "names", str),
        queues=_words(given, "queues", str),
        priorities=_words(given, "priorities", int),
        timezone=_zone(given.get("timezone")),
    )


def check_map(mapping: TableMap, columns: Mapping[str, str], jobs: Mapping[str, JobType]) -> None:
    """Hold a map against the table's columns (name to type) and the registered job types.

    Raises InvalidValue, or UnknownName, saying what was probably meant.
    """
    reading = mapping.reading
    for column in (*reading.columns, *reading.key, *reading.order):
        if column not in columns:
            raise InvalidValue("map", f"the unknown column {column!r}", suggestion(column, columns))
    for name in (*mapping.names.values(), *_constant(mapping.name)):
        if name not in jobs:
            raise UnknownName(str(name), jobs)
    for name in _constant(mapping.name):
        _check_arguments(mapping, jobs[name])
    due = mapping.fields.get("due")
    if due is not None and due.column is not None and mapping.timezone is None:
        kind = columns[due.column]
        if kind.startswith(NAIVE):
            raise InvalidValue(
                "map.due", f"a column of type {kind}", 'say in which zone: timezone = "UTC"'
            )


def _check_arguments(mapping: TableMap, job: JobType) -> None:
    if isinstance(mapping.args, Source) or job.group is not None:
        return
    for argument in mapping.args:
        if argument not in job.face.hints:
            remedy = suggestion(argument, job.face.hints)
            raise InvalidValue(f"map.args.{argument[:60]}", "an unknown argument", remedy)


def _constant(source: Source) -> tuple[str, ...]:
    return () if source.column is not None else (str(source.value),)


def _source(path: str, given: object) -> Source:
    if isinstance(given, str) and given:
        return Source(given)
    if isinstance(given, dict) and set(cast(Table, given)) == {"value"}:
        return Source(None, _json(path, cast(Table, given)["value"]))
    raise InvalidValue(
        path, f"{given!r}"[:60], 'name a column, as in "task", or a constant: { value = "x" }'
    )


def _args(given: object) -> Source | Mapping[str, Source]:
    arguments = _table(given)
    if arguments is None or set(arguments) == {"value"}:
        return _source("map.args", given)
    return {name: _source(f"map.args.{name[:60]}", each) for name, each in arguments.items()}


def _table(given: object) -> Table | None:
    return cast(Table, given) if isinstance(given, dict) else None


def _condition(given: Table, word: str, default: str) -> str:
    condition = given.get(word, default)
    if not isinstance(condition, str) or not condition.strip():
        raise InvalidValue(
            f"map.{word}", f"{condition!r}"[:60], "give an SQL condition, as in \"state = 'new'\""
        )
    return condition


def _columns(given: Table, word: str) -> tuple[str, ...]:
    columns = given.get(word, [])
    listed: list[object] = cast(list[object], columns) if isinstance(columns, list) else [columns]
    if not all(isinstance(each, str) and each for each in listed):
        raise InvalidValue(f"map.{word}", f"{columns!r}"[:60], "name a column, or a list of them")
    return tuple(cast(list[str], listed))


def _words(given: Table, word: str, kind: type[Any]) -> Mapping[str, Any]:
    words = given.get(word, {})
    if not isinstance(words, dict):
        raise InvalidValue(f"map.{word}", f"{words!r}"[:60], "give a table of old = new")
    for old, new in cast(Table, words).items():
        if not isinstance(new, kind) or isinstance(new, bool):
            remedy = f"give a {kind.__name__}"
            raise InvalidValue(f"map.{word}.{old[:60]}", f"{new!r}"[:60], remedy)
    return cast(Mapping[str, Any], words)


def _zone(given: object) -> ZoneInfo | None:
    if given is None:
        return None
    try:
        return ZoneInfo(cast(str, given))
    except Exception:
        remedy = 'give a name such as "UTC" or "Europe/Berlin"'
        raise InvalidValue("map.timezone", f"{given!r}"[:60], remedy) from None


def _json(path: str, value: object) -> object:
    """A constant as JSON has it; TOML's times become text."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case list():
            return [_json(path, each) for each in cast(Iterable[object], value)]
        case dict():
            return {name: _json(path, each) for name, each in cast(Table, value).items()}
        case _:
            return value
