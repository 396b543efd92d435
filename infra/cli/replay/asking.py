"""What every ``leasebook replay`` command is asked: which database, window, jobs and format."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, TypeAlias

import click
from attrs import evolve as replace
from attrs import frozen

from ....domain.log import Recorded
from ....projections.replay.at import concerns
from ....projections.replay.choosing import Choice
from ....projections.replay.facts import Facts, gather
from ....projections.streams import Step, by_job, steps
from ...postgres.history import EVENTS_MAX, PostgresHistory
from ...replay_ports import History
from ..options import dsn_option, plain_book, schema_option
from ..output import answering

When: TypeAlias = datetime | timedelta

FORMATS = ("table", "json", "ndjson")
SINCE_DEFAULT = timedelta(days=1)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
RELATIVE = re.compile(r"-(\d+)([smhd])")


def moment(value: str) -> When:
    """``2026-03-01T14:00:00Z``, ``now``, or so long ago: ``-90s``, ``-15m``, ``-2h``, ``-7d``.

    A distance from now comes as such.  Raises click.BadParameter.
    """
    if value == "now":
        return timedelta(0)
    try:
        if found := RELATIVE.fullmatch(value):
            return -timedelta(**{UNITS[found[2]]: int(found[1])})
        at = datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is no moment: write 2026-03-01T14:00:00Z, or -15m, -2h, -7d."
        ) from None
    if at.utcoffset() is None:
        raise click.BadParameter(f"{value!r} says no time zone: add Z, or +01:00.")
    return at


@frozen
class Asked:
    """The options that all commands share, as they were given."""

    dsn: str | None
    schema: str
    since: When | None
    until: When | None
    choice: Choice
    format: str
    events_max: int

    @property
    def no_window(self) -> bool:
        """Whether neither end of the window was given."""
        return self.since is None and self.until is None

    @property
    def as_json(self) -> bool:
        """Whether programs read the answer."""
        return self.format != "table"


@frozen
class Replay:
    """An open history, and the choice with its window in the database's time."""

    history: History
    choice: Choice
    now: datetime

    @property
    def since(self) -> datetime:
        """Where the window begins."""
        assert self.choice.since is not None
        return self.choice.since

    @property
    def until(self) -> datetime:
        """Where the window ends."""
        assert self.choice.until is not None
        return self.choice.until

    def at(self, when: When) -> datetime:
        """A moment that was asked for."""
        return when if isinstance(when, datetime) else self.now + when

    def beginning(self, since: datetime) -> Replay:
        """The same with a window that begins at ``since``."""
        return replace(self, choice=replace(self.choice, since=since))

    def facts(self) -> Facts:
        """What the audit log tells up to the end of the window."""
        return gather(self.history.audit(self.until))

    def log(self, *, chosen: bool = True) -> Generator[Recorded]:
        """The events of jobs that the window concerns; unless ``chosen``, of all of them."""
        for life in self.lives(chosen=chosen):
            yield from (step.recorded for step in life)

    def lives(self, *, chosen: bool = True) -> Generator[tuple[Step, ...]]:
        """The lives that the window concerns; unless ``chosen``, those of all jobs."""
        job = self.choice.job if chosen else None
        for stream in by_job(self.history.events(self.until, self.since, job)):
            life = steps(stream)
            if not life or not concerns(life, self.since):
                continue
            if not chosen or self.choice.of_job(life[0].after.spec):
                yield life


@contextmanager
def replaying(asked: Asked, until: When | None = None) -> Generator[Replay]:
    """The history that was asked for; given ``until`` its window is that one moment.

    Raises click.UsageError for a window that ends before it begins.
    """
    with answering(as_json=asked.as_json), plain_book(asked.dsn, asked.schema) as book:
        history = PostgresHistory(book.dsn, book.schema, asked.events_max)
        try:
            history.require_schema()
            now = history.now()
            made = Replay(history, asked.choice, now)
            since, end = _window_of(asked, made, until)
            if end < since:
                raise click.UsageError(
                    f"--from is {since.isoformat(timespec='seconds')}, later than --to, "
                    f"{end.isoformat(timespec='seconds')}."
                )
            choice = replace(asked.choice, since=since, until=end)
            yield replace(made, choice=choice)
        finally:
            history.close()


def _window_of(asked: Asked, made: Replay, until: When | None) -> tuple[datetime, datetime]:
    """Where the window begins and ends: all of it is one moment when that was asked for."""
    last = asked.until if until is None else until
    end = made.now if last is None else made.at(last)
    if until is not None:
        return end, end
    return (end - SINCE_DEFAULT if asked.since is None else made.at(asked.since)), end


def common(*, window: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The shared options; the command gets them as one ``Asked`` in front of its own.

    Without a ``window`` there is no ``--from`` and no ``--to``.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            names = ("queue", "name", "key", "group", "worker", "job")
            choice = Choice(**{name: given.pop(f"only_{name}") for name in names})
            asked = Asked(
                given.pop("dsn"),
                given.pop("schema"),
                given.pop("since", None),
                given.pop("until", None),
                choice,
                given.pop("format"),
                given.pop("events_max"),
            )
            command(asked, **given)

        for option in reversed([*_window(window), *FILTERS, *ENDS]):
            run = option(run)
        return dsn_option(schema_option(run))

    return decorate


def _window(window: bool) -> list[Callable[..., Any]]:
    if not window:
        return []
    since = click.option(
        "--from", "since", type=moment, metavar="MOMENT",
        help="Where the window begins: 2026-03-01T14:00:00Z, or -15m, -2h, -7d.  "
        "[default: a day before the end]",
    )  # fmt: skip
    until = click.option(
        "--to", "until", type=moment, metavar="MOMENT",
        help="Where it ends; what happened later is not read.  [default: now]",
    )  # fmt: skip
    return [since, until]


FILTERS: list[Callable[..., Any]] = [
    click.option("--queue", "only_queue", help="Only jobs of this queue."),
    click.option("--name", "only_name", help="Only jobs of this name."),
    click.option("--key", "only_key", help="Only jobs with this unique or ordering key."),
    click.option("--group", "only_group", help="Only jobs with this group key."),
    click.option("--worker", "only_worker", help="Only runs of this worker, by id or name."),
    click.option("--job", "only_job", type=click.UUID, help="Only this job."),
]
ENDS: list[Callable[..., Any]] = [
    click.option("--format", type=click.Choice(FORMATS), default="table", show_default=True),
    click.option(
        "--max-events", "events_max", type=click.IntRange(1), default=EVENTS_MAX,
        show_default=True, help="Read no more events than this.",
    ),
]  # fmt: skip
