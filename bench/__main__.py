"""``make bench``, or ``make bench ARGS="drain growth --rounds 5"``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, evolve
from rich.console import Console

from . import guard, page
from .database import serving
from .environments import FOLDER, TOP
from .facts import facts, now
from .measures import MEASURES, SIZES, Bench, Size
from .peers import Spec
from .recorded import Recording, load, save
from .report import show
from .result import Result
from .rounds import EVERY, PLANS, USUALLY, Measured, measured

WIDTH = 160


class Session:
    """One call of the program: options, a server, and where lines go."""

    def __init__(
        self,
        options: argparse.Namespace,
        bench: Bench,
        console: Console,
        told: Mapping[str, object],
    ) -> None:
        self.options = options
        #: Of the start: the record itself makes the working tree differ from its commit.
        self.told = told
        self.bench = bench
        self.console = console
        self.results: list[Result] = []
        self.absent: dict[str, str] = {}

    def tell(self, line: str) -> None:
        """A line as it comes, so that one sees something happen."""
        self.console.print(line, style="dim", soft_wrap=True, highlight=False, markup=False)

    def run(self, measure: str, queues: Sequence[str], rounds: int) -> Measured:
        """Measure, and remember."""
        specs = self.options.queues or [Spec.parse(each) for each in queues]
        found = measured(self.bench, measure, specs, self.options.rounds or rounds, self.tell)
        self.results.extend(found.results)
        self.absent |= {f"{measure}, {name}": why for name, why in found.absent.items()}
        return found

    def usual(self) -> None:
        """What was asked for."""
        for measure in self.options.measures or USUALLY:
            plan = PLANS[measure]
            self.run(measure, plan.queues, plan.rounds)

    def record(self) -> None:
        """Into ``recorded.json``, after each measure, so that what is cut off is kept so far."""
        for measure in self.options.measures or USUALLY:
            plan = PLANS[measure]
            rounds = self.options.rounds or plan.recorded_rounds
            found = self.run(measure, plan.recorded_queues, rounds)
            told = {**self.told, "at": now()}
            seen = {each.queue for each in found.results} | set(found.absent)
            absent = dict(found.absent)
            for name in EVERY:
                if name not in seen:
                    asked = name in plan.recorded_queues
                    absent[name] = "left out with --queues" if asked else plan.others
            made = Recording(told, self.options.size, rounds, found.results, absent)
            before = load()
            save(evolve(before, measures={**before.measures, measure: made}))
            page.write(load())
        if not self.options.measures:
            self.record_guard()

    def record_guard(self) -> None:
        """The ratios of a short run, which the guard compares with."""
        found: list[Result] = []
        for measure in self._of_guard():
            found.extend(self._guarded(measure, guard.ROUNDS))
        before, told = load(), {**self.told, "at": now()}
        save(evolve(before, guard={**before.guard, **guard.ratios(found)}, guarded=told))

    def guard(self) -> int:
        """Compare; the exit code."""
        judged = guard.guard(load().guard, self._guarded, self._of_guard())
        for each in judged:
            self.console.print(str(each), highlight=False, soft_wrap=True)
        return guard.exit_code(judged)

    def _of_guard(self) -> list[str]:
        asked = self.options.measures or list(guard.QUEUES)
        return [measure for measure in asked if measure in guard.QUEUES]

    def _guarded(self, measure: str, rounds: int) -> Sequence[Result]:
        short = Bench(self.bench.server, SIZES[guard.SIZE], self.options.quiet)
        specs = [Spec.parse(each) for each in guard.QUEUES[measure]]
        return measured(short, measure, specs, rounds, self.tell).results


def main() -> int:
    """Measure, show, and keep the results."""
    options = _options()
    if options.page:
        page.write(load())
        return 0
    # A file has no width; tables are wider than what is taken for it.
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    began = time.monotonic()
    code = 0
    with serving(options.dsn, FOLDER / "postgres") as server:
        told = facts(server)
        console.print(json.dumps(told), style="dim", soft_wrap=True, highlight=False)
        session = Session(options, Bench(server, _size(options), options.quiet), console, told)
        try:
            if options.guard:
                if options.record:
                    session.record_guard()
                else:
                    code = session.guard()
            elif options.record:
                session.record()
            else:
                session.usual()
        except KeyboardInterrupt:
            console.print("interrupted; this is what was measured so far")
            code = 130
    seconds = time.monotonic() - began
    if session.results:
        show(console, session.results, session.absent)
        path = _keep(told, session)
        console.print(f"[dim]{path.relative_to(TOP)}[/]")
    console.print(f"[dim]measured in {seconds:.0f} s[/]")
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure leasebook beside other queues and the bare limit, round by round.",
        epilog="A queue is NAME, NAME:BATCH, or leasebook@CHECKOUT for another working tree. "
        f"Queues: {', '.join(EVERY)}.",
    )
    choices = ", ".join(MEASURES)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"some of {choices}")
    parser.add_argument("--rounds", type=_count, help="rounds of each measure")
    parser.add_argument("--queues", help="comma-separated, or all")
    parser.add_argument("--size", choices=SIZES, help="how much (usual; full with --record)")
    parser.add_argument("--jobs", type=_count, help="jobs in a drain, instead of the size's")
    parser.add_argument("--minutes", type=_minutes, help="how long the old snapshot is held")
    parser.add_argument(
        "--quiet", type=float, help="seconds to wait for quiet (5; 20 for the record and the guard)"
    )
    parser.add_argument("--dsn", help="a server to use; databases leasebook_bench_* come and go")
    parser.add_argument("--record", action="store_true", help="for docs/speed.md; see README.md")
    parser.add_argument("--page", action="store_true", help="make docs/speed.md anew, no more")
    parser.add_argument("--guard", action="store_true", help="compare ratios with the record")
    options = parser.parse_args()
    if options.quiet is None:
        options.quiet = 20.0 if options.record or options.guard else 5.0
    options.size = options.size or ("full" if options.record else "usual")
    for name in options.measures:
        if name not in MEASURES:
            parser.error(f"there is no measure {name!r}; choose from {choices}")
    try:
        asked = EVERY if options.queues == "all" else (options.queues or "").split(",")
        options.queues = options.queues and [Spec.parse(each) for each in dict.fromkeys(asked)]
    except ValueError as error:
        parser.error(str(error))
    return options


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _minutes(text: str) -> float:
    with suppress(ValueError):
        if 0.0 < (minutes := float(text)) < float("inf"):
            return minutes
    raise argparse.ArgumentTypeError(f"{text!r} is no time; give minutes, more than 0")


def _size(options: argparse.Namespace) -> Size:
    size = SIZES[options.size]
    if options.jobs:
        size = evolve(size, jobs=options.jobs)
    if options.minutes:
        size = evolve(size, snapshot_seconds=options.minutes * 60)
    return size


def _keep(told: dict[str, object], session: Session) -> Path:
    folder = FOLDER / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    document = {
        "facts": told,
        "absent": session.absent,
        "results": [asdict(each) for each in session.results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
