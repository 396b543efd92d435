"""One row of somebody's queue table as an order, or why a person must look at it first."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from uuid import UUID

from attrs import evolve, frozen

from ...domain.errors import InvalidValue
from ..caller_ports import Order
from ..import_ports import OldRow
from .errors import UnknownName
from .mapping import ANY, Source, TableMap
from .registry import JobType

REGISTER = "register a handler of that name, or name another one under [names] in the map"


@frozen
class SetAside:
    """A row that is left alone: ``reason`` is stable, ``seen`` and ``remedy`` are for people."""

    key: str
    reason: str
    seen: str
    remedy: str


class Ambiguous(Exception):
    """A row cannot be imported as it stands."""

    def __init__(self, reason: str, seen: str, remedy: str) -> None:
        super().__init__(seen)
        self.reason = reason
        self.seen = seen
        self.remedy = remedy


@frozen
class Interpreter:
    """Makes orders of rows.  ``types`` are the columns' types, ``now`` is the database's time."""

    source: str
    mapping: TableMap
    types: Mapping[str, str]
    jobs: Mapping[str, JobType]
    now: datetime

    def order(self, row: OldRow) -> Order:
        """The order of a waiting row, with an id that is the same each time.  Raises Ambiguous."""
        job = self._job(row)
        options = self._options(row, job)
        try:
            order = job.order_named(self._args(row), options)
        except InvalidValue as error:
            field = error.field.partition(".")[0].partition("[")[0]
            reason = "bad_arguments" if field in ("args", "item") else f"bad_{field}"
            raise Ambiguous(reason, str(error), "mend the row, or its map") from None
        return evolve(order, spec=evolve(order.spec, id=job_id(self.source, row.key)))

    def _job(self, row: OldRow) -> JobType:
        old = self._value(row, self.mapping.name)
        if not isinstance(old, str) or not old:
            raise Ambiguous("unknown_name", f"the name is {old!r}"[:80], REGISTER)
        name = self.mapping.names.get(old, old)
        job = self.jobs.get(name)
        if job is None:
            raise Ambiguous("unknown_name", str(UnknownName(name, self.jobs)), REGISTER)
        return job

    def _args(self, row: OldRow) -> object:
        args = self.mapping.args
        if not isinstance(args, Source):
            return {name: self._value(row, each) for name, each in args.items()}
        given = self._value(row, args)
        if isinstance(given, str) and args.column is not None:
            return _document(given)
        return {} if given is None else given

    def _options(self, row: OldRow, job: JobType) -> dict[str, object]:
        given = {word: self._value(row, each) for word, each in self.mapping.fields.items()}
        options = {word: value for word, value in given.items() if value is not None}
        if "due" in options:
            due = self._due(options.pop("due"))
            # A group's window says when it is due; only a later time would be lost with it.
            if job.group is None or due > self.now:
                options["run_at"] = due
        if "priority" in options and self.mapping.priorities:
            options["priority"] = self._priority(options["priority"])
        if "queue" in options:
            queue = str(options["queue"])
            options["queue"] = self.mapping.queues.get(queue, queue)
        for word in ("group_key", "label", "owner", "subject"):
            if word in options and not isinstance(options[word], str):
                options[word] = json.dumps(options[word])
        return options

    def _due(self, given: object) -> datetime:
        try:
            if isinstance(given, str):
                moment = datetime.fromisoformat(given)
                if moment.tzinfo is None:
                    assert self.mapping.timezone is not None, "the map was checked"
                    moment = moment.replace(tzinfo=self.mapping.timezone)
                return moment
            if isinstance(given, int | float) and not isinstance(given, bool):
                return datetime.fromtimestamp(given, UTC)
        except (ValueError, OverflowError, OSError):
            pass
        raise Ambiguous("bad_due", f"{given!r} is no time"[:80], "set a time, or null for at once")

    def _priority(self, given: object) -> int:
        known = self.mapping.priorities
        found = known.get(str(given), known.get(ANY))
        if found is None:
            raise Ambiguous(
                "bad_priority",
                f"priority {given!r} has no counterpart"[:80],
                f'add it under [priorities] in the map, or "{ANY}" for all others',
            )
        return found

    def _value(self, row: OldRow, source: Source) -> object:
        if source.column is None:
            return source.value
        value = row.values[source.column]
        if self.types.get(source.column) == "bytea" and isinstance(value, str):
            try:
                return bytes.fromhex(value.removeprefix("\\x")).decode()
            except ValueError:
                raise Ambiguous(
                    "bad_arguments",
                    f"column {source.column!r} holds bytes that are not UTF-8",
                    "mend the row",
                ) from None
        return value


def job_id(source: str, key: str) -> UUID:
    """The id of the job that a row becomes: of version 8, by a hash of the table and the key."""
    digest = hashlib.sha256(f"leasebook import\0{source}\0{key}".encode()).digest()
    bits = int.from_bytes(digest[:16], "big")
    bits &= ~(0xF << 76) & ~(0x3 << 62)
    return UUID(int=bits | (0x8 << 76) | (0x2 << 62))


def _document(text: str) -> object:
    """The JSON document in a column of text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Ambiguous("bad_arguments", f"not JSON: {error}"[:120], "mend the row") from None
