"""What every ``leasebook replay`` command is asked: which database, window, jobs and format."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import click
from attrs import evolve as replace
from attrs import frozen

from ....domain.log import Recorded
from ....projections.replay.at import concerns
from ....projections.replay.choosing import Choice
from ....projections.replay.facts import Facts, gather
from ....projections.replay.runs import Run, runs_of
from ....projections.streams import Step, by_job, steps
from ...bundle.reader import BundleHistory
from ...postgres.history import EVENTS_MAX
from ...postgres.position import Position
from ...replay_ports import History
from ..options import RELATIVE, dsn_option, schema_option, span
from ..output import answering
from .sources import Source, opened

When: TypeAlias = datetime | timedelta

FORMATS = ("table", "json", "ndjson")
SINCE_DEFAULT = timedelta(days=1)


def moment(value: str) -> When:
    """``2026-03-01T14:00:00Z``, ``now``, or so long ago: ``-90s``, ``-15m``, ``-2h``, ``-7d``.

    A distance from now comes as such.  Raises click.BadParameter.
    """
    if value == "now":
        return timedelta(0)
    if (found := span(value)) is not None:
        return -found
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no moment: write 2026-03-01T14:00:00Z, or -15m, -2h, -7d."
        ) from None
    if at.utcoffset() is None:
        raise click.BadParameter(f"{value!r} says no time zone: add Z, or +01:00.")
    return at


class TakesMoments(click.Command):
    """A command with moments as arguments, where ``-2h`` is no option and no plea for help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, once the sign that says "ago" is gone from arguments."""
        valued = {
            name
            for option in self.params
            if isinstance(option, click.Option) and not option.is_flag
            for name in option.opts
        }
        plain = [
            arg[1:] if arg.startswith("-") and RELATIVE.fullmatch(arg) and before not in valued
            else arg
            for before, arg in pairwise(["", *args])
        ]  # fmt: skip
        return super().parse_args(ctx, plain)


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
    anyway: bool
    bundle: Path | None

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
    """An open history, and the choice with its window in the database's time.

    ``position`` is the snapshot that sees all that is read, where that was asked for.
    """

    history: History
    choice: Choice
    now: datetime
    position: Position | None = None

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

    def log(self) -> Iterator[Recorded]:
        """The events of the jobs asked about that the window concerns."""
        for life in self.lives():
            yield from (step.recorded for step in life)

    def lives(self) -> Iterator[tuple[Step, ...]]:
        """The lives of the jobs asked about that the window concerns."""
        for life in self.everything(self.since, self.choice.job):
            if self.choice.of_job(life[0].after.spec):
                yield life

    def runs(self) -> Iterator[Run]:
        """All runs of those jobs, job by job, also those before the window."""
        for life in self.lives():
            yield from runs_of(life)

    def everything(self, since: datetime, job: UUID | None = None) -> Iterator[tuple[Step, ...]]:
        """The lives of all jobs, or of one, that the time from ``since`` on concerns."""
        for stream in by_job(self.history.events(self.until, since, job)):
            life = steps(stream)
            if life and concerns(life, since):
                yield life


@contextmanager
def replaying(
    asked: Asked, until: When | None = None, *, pinned: bool = False
) -> Generator[Replay]:
    """The history that was asked for; given ``until`` its window is that one moment.

    ``pinned``, a database is read as one snapshot sees it.  Raises click.UsageError for a window
    that ends before it begins, or that the bundle does not hold.
    """
    source = Source(asked.dsn, asked.schema, asked.bundle, asked.events_max, asked.anyway)
    with answering(as_json=asked.as_json), opened(source, pinned=pinned) as (history, position):
        made = Replay(history, asked.choice, history.now(), position)
        first = history.manifest.since if isinstance(history, BundleHistory) else None
        since, end = _window_of(asked, made, until, first)
        if end < since:
            raise click.UsageError(
                f"--from is {since.isoformat(timespec='seconds')}, later than --to, "
                f"{end.isoformat(timespec='seconds')}."
            )
        if first is not None and not first <= since <= end <= made.now:
            raise click.UsageError(
                f"the bundle holds {first.isoformat()} to {made.now.isoformat()}, and "
                f"{since.isoformat()} to {end.isoformat()} was asked for."
            )
        choice = replace(asked.choice, since=since, until=end)
        yield replace(made, choice=choice)


def _window_of(
    asked: Asked, made: Replay, until: When | None, first: datetime | None
) -> tuple[datetime, datetime]:
    """Where the window begins and ends: all of it is one moment when that was asked for.

    What was not asked for is as in the bundle, which begins at ``first``, or a day up to now.
    """
    last = asked.until if until is None else until
    end = made.now if last is None else made.at(last)
    if until is not None:
        return end, end
    if asked.since is not None:
        return made.at(asked.since), end
    return first or end - SINCE_DEFAULT, end


def common(
    *,
    window: bool = True,
    begins: bool = True,
    filters: bool = True,
    workers: bool = True,
    formats: bool = True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The shared options; the command gets them as one ``Asked`` in front of its own.

    Without a ``window`` there is no ``--from`` and no ``--to``, without ``begins`` no ``--from``,
    and so on: an option that a command would not obey is none of its options.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            names = ("queue", "name", "key", "group", "worker", "job")
            choice = Choice(**{name: given.pop(f"only_{name}", None) for name in names})
            asked = Asked(
                given.pop("dsn"),
                given.pop("schema"),
                given.pop("since", None),
                given.pop("until", None),
                choice,
                given.pop("format", "table"),
                given.pop("events_max"),
                given.pop("anyway"),
                given.pop("bundle"),
            )
            command(asked, **given)

        chosen = [
            *([SINCE] if window and begins else ()),
            *([UNTIL] if window else ()),
            *(FILTERS if filters else ()),
            *([OF_WORKER] if filters and workers else ()),
            *(FORMAT if formats else ()),
            *ENDS,
        ]
        for option in reversed(chosen):
            run = option(run)
        return dsn_option(schema_option(run))

    return decorate


SINCE: Callable[..., Any] = click.option(
    "--from", "since", type=moment, metavar="MOMENT",
    help="Where the window begins: 2026-03-01T14:00:00Z, or -15m, -2h, -7d.  "
    "[default: a day before the end]",
)  # fmt: skip
UNTIL: Callable[..., Any] = click.option(
    "--to", "until", type=moment, metavar="MOMENT",
    help="Where it ends; what happened later is not read.  [default: now]",
)  # fmt: skip
OF_WORKER: Callable[..., Any] = click.option(
    "--worker", "only_worker", help="Only runs of this worker, by id or name."
)
FILTERS: list[Callable[..., Any]] = [
    click.option("--queue", "only_queue", help="Only jobs of this queue."),
    click.option("--name", "only_name", help="Only jobs of this name."),
    click.option("--key", "only_key", help="Only jobs with this unique or ordering key."),
    click.option("--group", "only_group", help="Only jobs with this group key."),
    click.option("--job", "only_job", type=click.UUID, help="Only this job."),
]
FORMAT: list[Callable[..., Any]] = [
    click.option("--format", type=click.Choice(FORMATS), default="table", show_default=True),
]
ENDS: list[Callable[..., Any]] = [
    click.option(
        "--max-events", "events_max", type=click.IntRange(1), default=EVENTS_MAX,
        show_default=True, help="Read no more events than this.",
    ),
    click.option(
        "--bundle", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
        help="Read this bundle instead of a database.",
    ),
    click.option(
        "--anyway", is_flag=True,
        help="Read also while an old snapshot keeps dead rows from vacuum.",
    ),
]  # fmt: skip
