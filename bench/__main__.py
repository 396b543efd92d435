"""``make bench``, or ``make bench ARGS="drain growth --rounds 5"``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, evolve
from rich.console import Console

from .database import Server, serving
from .measures import MEASURES, Bench, Result
from .peers import Spec
from .process import FOLDER, TOP
from .report import FOREIGN_CORES_MAX, floors, show

#: measure -> queues and rounds unless others are asked for; all together less than five minutes
DEFAULTS: dict[str, tuple[tuple[str, ...], int]] = {
    "drain": (("bare", "pgqueuer", "leasebook"), 3),
    "two": (("bare", "pgqueuer", "leasebook"), 2),
    "bulk": (("bare", "pgqueuer", "leasebook"), 3),
    "single": (("bare", "pgqueuer", "leasebook"), 2),
    "latency": (("pgqueuer", "leasebook"), 1),
    "growth": (("leasebook",), 2),
}
#: ``drain`` tells what ``bulk`` would.
USUAL = tuple(name for name in DEFAULTS if name != "bulk")


def main() -> None:
    """Measure, show, and keep the results."""
    options = _options()
    console = Console()
    results: list[Result] = []
    began = time.monotonic()
    with serving(options.dsn, FOLDER / "postgres") as server:
        facts = _facts(server)
        console.print(json.dumps(facts), style="dim", soft_wrap=True, highlight=False)
        bench = Bench(server, options.jobs, options.behind, options.quiet)
        try:
            for result in _measured(bench, options):
                results.append(result)
                console.print(_line(result), style="dim", soft_wrap=True, highlight=False)
        except KeyboardInterrupt:
            console.print("interrupted; this is what was measured so far")
    if results:
        show(console, results)
        path = _keep(facts, results)
        seconds = time.monotonic() - began
        console.print(f"[dim]{path.relative_to(TOP)}, measured in {seconds:.0f} s[/]")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure leasebook beside PGQueuer and the bare limit, round by round.",
        epilog="A queue is NAME, NAME:BATCH, or leasebook@CHECKOUT for another working tree.",
    )
    choices = ", ".join(MEASURES)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"some of {choices}")
    parser.add_argument("--rounds", type=int, help="rounds of each measure")
    parser.add_argument("--queues", help="comma-separated: leasebook, pgqueuer:10, bare")
    parser.add_argument("--jobs", type=int, default=50_000, help="jobs in a drain (50,000)")
    parser.add_argument("--behind", type=int, default=200_000, help="for growth (200,000)")
    parser.add_argument("--quiet", type=float, default=5.0, help="seconds to wait for quiet (5)")
    parser.add_argument("--dsn", help="a server to use; databases leasebook_bench_* come and go")
    options = parser.parse_args()
    options.measures = options.measures or list(USUAL)
    for name in options.measures:
        if name not in MEASURES:
            parser.error(f"there is no measure {name!r}; choose from {choices}")
    try:
        options.queues = options.queues and [Spec.parse(each) for each in options.queues.split(",")]
    except ValueError as error:
        parser.error(str(error))
    return options


def _measured(bench: Bench, options: argparse.Namespace) -> Iterator[Result]:
    for name in options.measures:
        queues, rounds = DEFAULTS[name]
        specs = options.queues or [Spec.parse(each) for each in queues]
        for number in range(options.rounds or rounds):
            for spec in specs:
                for result in MEASURES[name](bench, spec):
                    yield evolve(result, round=number)


def _line(result: Result) -> str:
    """A result as it comes, so that one sees something happen."""
    shown = {
        name: round(value, 2) if isinstance(value, float) else value
        for name, value in asdict(result).items()
        if value is not None and name not in ("measure", "queue", "round", "bulk_foreign")
    }
    noisy = " NOISY" if result.foreign > FOREIGN_CORES_MAX else ""
    return f"{result.measure} {result.round + 1} {result.queue}{noisy} {shown}"


def _facts(server: Server) -> dict[str, object]:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **server.facts(),
    }


def _keep(facts: dict[str, object], results: Sequence[Result]) -> Path:
    folder = FOLDER / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    document = {
        "facts": facts,
        "floors": [{"met": met, "text": text} for met, text in floors(results)],
        "results": [asdict(each) for each in results],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
