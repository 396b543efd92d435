"""``leasebook simulate``: a recorded window under another policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import click
from attrs import asdict, frozen

from ...domain.errors import InvalidValue
from ...domain.log import Recorded
from ...projections.replay.clock import length
from ...projections.replay.depth import depth_over_time
from ...projections.streams import Step, Stream, by_job, steps
from ...projections.whatif.history import History
from ...projections.whatif.measures import (
    TIMES,
    Agreement,
    Measures,
    Reckoning,
    agreement,
    reckon,
)
from ...projections.whatif.picture import comparison_svg
from ...projections.whatif.policy import Policy, parse
from ...projections.whatif.reading import read
from ...projections.whatif.world import simulate as run_world
from ...projections.wording import count
from .output import finish, save
from .replay.asking import Asked, Replay, common, replaying
from .replay.showing import print_records, stamp
from .tables import print_table

POINTS = 600
WORLDS = ("recorded", "baseline", "simulated")


@frozen
class Answer:
    """What was, what comes of the same policy, and of another."""

    recorded: Reckoning
    baseline: Reckoning
    simulated: Reckoning
    agreement: Agreement
    svg: str


@click.command()
@click.option(
    "--set", "settings", multiple=True, metavar="WHAT=VALUE",
    help="Let something be otherwise: NAME.group.window, NAME.group.max_hold, NAME.group.max_size, "
    "NAME.retry, NAME.retry.delay, NAME.retry.delays, NAME.concurrency, queue.NAME.concurrency, or "
    "concurrency, the slots of every worker.  May be repeated.",
)  # fmt: skip
@click.option(
    "--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Draw open jobs and waits, as they were and with the settings, into this file.",
)  # fmt: skip
@common(filters=False)
def simulate(asked: Asked, settings: tuple[str, ...], svg: Path | None) -> None:
    """What would have been with another policy: the recorded window run anew.

    Arrivals, run times, failures and the times that dispatch took are the recorded ones; who runs
    when comes from the rules of the queue.  It is run twice, with the recorded policy as well, and
    how well that meets what was recorded is told.  It only reads.
    """
    policy = parse(settings)
    with replaying(asked) as replay:
        answer = _answer(replay, policy, trim=asked.no_window)
    if svg is not None:
        save(svg, answer.svg)
    if asked.as_json:
        print_records(asked, replay, _records(answer))
    else:
        _show(replay, answer, changed=bool(settings))
    finish(0)


def _answer(replay: Replay, policy: Policy, *, trim: bool) -> Answer:
    """Run both worlds; ``trim`` leaves the empty ends of the window out of the picture."""
    since, until = replay.since, replay.until
    lives = _Lives([tuple(step.recorded for step in life) for life in replay.lives()])
    history = read(lives, replay.facts(), since, until)
    _check(policy, history)
    was = reckon(lives, since, until)
    log = run_world(history, Policy())
    same = other = reckon(_lives(log), since, until)
    if policy != Policy():
        del log  # A world may be large, and one of them is enough.
        log = run_world(history, policy)
        other = reckon(_lives(log), since, until)
    events = (lives.events, lambda: iter(log))
    if trim:
        found = [depth_over_time(each(), since, until, 1, trim=True) for each in events]
        since, until = min(each.since for each in found), max(each.until for each in found)
    depths = [depth_over_time(each(), since, until, POINTS) for each in events]
    drawn = comparison_svg((depths[0], depths[1]), (was.total.waits, other.total.waits))
    return Answer(was, same, other, agreement(was, same), drawn)


class _Lives:
    """The lives of a window, folded each time that they are gone through: streams are smaller."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._streams = streams

    def __iter__(self) -> Iterator[tuple[Step, ...]]:
        return map(steps, self._streams)

    def events(self) -> Iterator[Recorded]:
        """All events, stream by stream."""
        return chain.from_iterable(self._streams)


def _lives(log: Sequence[Recorded]) -> Iterator[Sequence[Step]]:
    yield from map(steps, by_job(log))


def _check(policy: Policy, history: History) -> None:
    """Refuse a policy for names and queues that did not occur, or for names without groups."""
    specs = history.specs
    names, groups = {each.name for each in specs}, {each.name for each in specs if each.group}
    queues = {each.queue for each in specs}
    for meant, there in ((policy.names, names), (policy.queues, queues)):
        for name in sorted(meant - there):
            remedy = f"name one of {', '.join(sorted(there)) or 'none'}, or look at another window"
            raise InvalidValue("--set", f"{name!r}, of which no job was there,", remedy)
    for name in sorted(policy.groups.keys() - groups):
        raise InvalidValue("--set", f"a group of {name!r}, which has none,", "leave it out")


def _show(replay: Replay, answer: Answer, *, changed: bool) -> None:
    click.echo(f"from {stamp(replay.since)} to {stamp(replay.until)}")
    click.echo(_told(answer.agreement))
    _table("all jobs", [each.total for each in _worlds(answer, changed=changed)], changed=changed)
    names = [*answer.recorded.by_name]
    for name in names if len(names) > 1 else ():
        found = [each.by_name.get(name, Measures()) for each in _worlds(answer, changed=changed)]
        _table(name, found, changed=changed)


def _worlds(answer: Answer, *, changed: bool) -> list[Reckoning]:
    """What a table shows: the baseline only while nothing was changed."""
    return [answer.recorded, answer.simulated if changed else answer.baseline]


def _told(found: Agreement) -> str:
    """How well the baseline meets what was."""
    if found.exact:
        return f"the baseline meets all {count(found.recorded, 'recorded start')} exactly"
    return (
        f"the baseline has {count(found.simulated, 'start')}, recorded were {found.recorded:,}; "
        f"{found.both:,} are in both, at most {length(found.furthest)} apart"
    )


def _table(title: str, found: Sequence[Measures], *, changed: bool) -> None:
    was, other = (each.numbers for each in found)
    click.echo()
    rows = [
        [name, _shown(name, was[name]), _shown(name, other[name])]
        for name in was
        if was[name] or other[name]
    ]
    print_table([title, "recorded", "with the settings" if changed else "baseline"], rows)


def _shown(name: str, number: float) -> str:
    return length(int(number)) if name in TIMES else f"{number:,g}"


def _records(answer: Answer) -> Iterator[Mapping[str, object]]:
    yield {"record": "agreement", **asdict(answer.agreement), "exact": answer.agreement.exact}
    reckonings = (answer.recorded, answer.baseline, answer.simulated)
    for world, reckoning in zip(WORLDS, reckonings, strict=True):
        yield {"record": "measures", "world": world, "name": None, **_named(reckoning.total)}
        for name, measures in reckoning.by_name.items():
            yield {"record": "measures", "world": world, "name": name, **_named(measures)}


def _named(measures: Measures) -> dict[str, object]:
    """The measures under names for programs, times in microseconds."""
    return {
        name.replace(" ", "_").replace("-", "_") + ("_microseconds" if name in TIMES else ""): value
        for name, value in measures.numbers.items()
    }
