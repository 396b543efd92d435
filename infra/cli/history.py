"""``leasebook history``: what happened to one job, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from uuid import UUID

import attrs
import click
from rich.table import Table
from rich.text import Text

from ...domain.events import Completed, Enqueued, ItemsJoined, Leased
from ...domain.log import Recorded
from ...projections.status import Summary
from ...projections.story import Line, tell
from ...projections.streams import steps
from ..app.redaction import bounded, redact
from .look import reader
from .options import connection_options, plain_book
from .output import FINDING, answering, finish, line_of, print_json
from .tables import console

#: Fields of events that hold JSON documents as text.
DOCUMENTS = frozenset({"args", "items", "receipt", "result"})
#: A document is shown to people up to here, and so many items of a group.
DOCUMENT_CHARS_MAX = 500
ITEMS_TOLD = 100


class LocalZone(tzinfo):
    """The zone of this machine, summer time included: what ``datetime.astimezone()`` goes by."""

    def fromutc(self, when: datetime) -> datetime:
        """A moment in UTC as local time."""
        return when.replace(tzinfo=UTC).astimezone().replace(tzinfo=self)

    def utcoffset(self, when: datetime | None) -> timedelta | None:
        """The distance from UTC at that local time."""
        return None if when is None else when.replace(tzinfo=None).astimezone().utcoffset()

    def tzname(self, when: datetime | None) -> str | None:
        """What the zone is called at that local time."""
        return None if when is None else when.replace(tzinfo=None).astimezone().tzname()

    def dst(self, when: datetime | None) -> timedelta | None:
        """Not told apart from the offset."""
        return None


@click.command()
@click.argument("job", type=click.UUID)
@connection_options
def history(job: UUID, dsn: str | None, schema: str, as_json: bool) -> None:
    """Tell what happened to JOB and why; exit 1 when there is no such job."""
    with answering(as_json=as_json), plain_book(dsn, schema) as book, reader(book) as queue:
        stream = queue.stream(job)
        ended = None if stream else queue.summary(job)
    if as_json:
        print_json(document(job, stream, ended))
    elif stream:
        for line in shown(stream):
            click.echo(line)
    elif ended is not None:
        click.echo(pruned(ended))
    else:
        click.echo(f"leasebook: no job {job} is in this log", err=True)
    finish(0 if stream or ended else FINDING)


def pruned(ended: Summary) -> str:
    """What is left to tell of a job whose stream was pruned."""
    owner = "" if ended.owner is None else f", owner {ended.owner}"
    return f"job {ended.job_id}: {ended.name}{owner}\nits history was pruned: {ended}"


def document(
    job: UUID, stream: Sequence[Recorded], ended: Summary | None = None
) -> dict[str, object]:
    """The stream as JSON: its last state, every event, and the story line by line.

    Of a pruned one, ``ended`` tells how the job ended.
    """
    life = steps(stream)
    return {
        "job": job,
        "state": life[-1].after.state if life else None,
        "pruned": None if ended is None else attrs.asdict(ended),
        "events": [event_document(each) for each in stream],
        "story": [str(line) for line in tell(stream, worker_names(stream))],
    }


def worker_names(stream: Sequence[Recorded]) -> dict[str, str]:
    """Worker ids of one story with the names to show: ``ada`` for ``ada#c1bd3c137bc4``.

    Two starts of one name in one story keep their ids, or they would look like one worker.
    """
    ids = {each.event.worker for each in stream if isinstance(each.event, Leased)}
    names = {worker: worker.rpartition("#")[0] or worker for worker in ids}
    shown_by = list(names.values())
    return {worker: name for worker, name in names.items() if shown_by.count(name) == 1}


def shown(stream: Sequence[Recorded]) -> Iterator[str]:
    """The story in local time: in a terminal wrapped between words, else one line an event."""
    zone = LocalZone()
    lines = tell(stream, worker_names(stream), zone)
    heading, rest = lines[0], lines[1:]
    head = [str(heading), f"times are {zone_names(stream, zone)}", *given(stream)]
    if console.is_terminal:
        with console.capture() as drawn:
            console.print(*map(Text, head), sep="\n")
            console.print(story_table(rest))
            console.print(*map(Text, gave(stream)), sep="\n", end="")
        yield from (line.rstrip() for line in drawn.get().splitlines())
        return
    yield from head
    yield from map(str, rest)
    yield from gave(stream)


def given(stream: Sequence[Recorded]) -> Iterator[str]:
    """What the job is given, in a line: its arguments, or the items that have joined it."""
    birth = stream[0].event
    if isinstance(birth, Enqueued) and birth.spec.group is None:
        yield f"arguments: {_told(birth.spec.args)}"
    joined = (each.event for each in stream)
    items = [item for event in joined if isinstance(event, ItemsJoined) for item in event.items]
    if items:
        yield f"items: {_told(', '.join(items[:ITEMS_TOLD]))}"


def gave(stream: Sequence[Recorded]) -> Iterator[str]:
    """What came of it, in a line, when its handler returned anything."""
    end = stream[-1].event
    if isinstance(end, Completed) and end.result != "null":
        yield f"result: {_told(end.result)}"


def _told(document: str) -> str:
    """A document on one line, redacted as errors are, and cut; ``--json`` has all of it."""
    return bounded(line_of(redact(document)), DOCUMENT_CHARS_MAX)


def zone_names(stream: Sequence[Recorded], zone: tzinfo) -> str:
    """The zone as it was at the first and at the last event: ``CET (UTC+01:00)``."""
    ends = [stream[0].at.astimezone(zone), stream[-1].at.astimezone(zone)]
    return " to ".join(dict.fromkeys(map(zone_name, ends)))


def zone_name(at: datetime) -> str:
    """The zone of a local time: ``UTC``, ``CET (UTC+01:00)``."""
    name, offset = at.strftime("%Z"), at.strftime("%z")
    return name if name == "UTC" else f"{name} (UTC{offset[:3]}:{offset[3:5]})"


def story_table(lines: Sequence[Line]) -> Table:
    """Time and text side by side; a day stands on a line of its own."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for line in lines:
        day, _, clock = line.stamp.rpartition(" ")
        if day:
            table.add_row(Text(day, style="bold"), "")
        table.add_row(clock, Text(line.text))
    return table


def event_document(recorded: Recorded) -> dict[str, object]:
    """One event as JSON."""
    event = recorded.event
    return {
        "version": recorded.version,
        "kind": event.kind,
        **_plain(attrs.asdict(event)),
    }


def _plain(fields: Mapping[str, object]) -> dict[str, object]:
    """Fields of an event, with documents as the values that they hold."""
    told: dict[str, object] = {}
    for name, value in fields.items():
        if name in DOCUMENTS and value is not None:
            told[name] = _parsed(value)
        elif isinstance(value, dict):
            told[name] = _plain(value)  # pyright: ignore[reportUnknownArgumentType]
        else:
            told[name] = value
    return told


def _parsed(value: object) -> object:
    if isinstance(value, str):
        return json.loads(value)
    assert isinstance(value, tuple | list)
    return [json.loads(each) for each in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
