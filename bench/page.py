"""The part of ``docs/speed.md`` that is made from ``recorded.json``, and the chart beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .chart import chart
from .environments import TOP
from .goals import verdicts
from .peers import NOT_MEASURED
from .recorded import Recorded, Recording
from .result import TITLES, Result
from .tables import name_of, table

PAGE = TOP / "docs" / "speed.md"
CHART = TOP / "docs" / "images" / "speed.svg"
BEGIN = "<!-- from here on made from bench/recorded.json by `make bench` -->"
END = "<!-- to here -->"
#: What stands above figures that are not those of a full record.
SHORT = (
    "**These are the figures of a short run that shows how the page is made; take none from it.** "
    'The full one is `make bench ARGS="--record"`.'
)

USUAL = (
    "These are figures of the usual sizes, beside the queues that are shown. The full run is "
    '`make bench ARGS="--record"`.'
)


def made(recorded: Recorded) -> str:
    """The text between the marks."""
    parts = [BEGIN, ""]
    sizes = {each.size for each in recorded.measures.values()}
    if sizes - {"usual", "full"}:
        parts += [SHORT, ""]
    elif "usual" in sizes:
        parts += [USUAL, ""]
    parts += ["![Speed beside other queues](images/speed.svg)", "", *_machines(recorded)]
    parts += _goals(recorded.results)
    for measure, recording in recorded.measures.items():
        parts += _measure(measure, recording)
    parts += _absent(recorded)
    return "\n".join([*parts, END])


def with_made(page: str, recorded: Recorded) -> str:
    """The page with its made part made anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + made(recorded) + tail


def write(recorded: Recorded) -> None:
    """Bring the page and its chart up to date."""
    page = PAGE.read_text("utf-8")
    PAGE.write_text(with_made(page, recorded), "utf-8")
    CHART.parent.mkdir(exist_ok=True)
    CHART.write_text(chart(recorded.results), "utf-8")


def _goals(results: Sequence[Result]) -> list[str]:
    found = verdicts(results)
    marks = {True: "yes", False: "**no**", None: "–"}
    rows = [(each.what, each.goal, each.seen, marks[each.met]) for each in found]
    met, unknown = (sum(each.met is answer for each in found) for answer in (True, None))
    told = f"{met} of {len(found)} goals are met"
    told += f"; {unknown} were not measured on a quiet machine." if unknown else "."
    return ["## Goals", "", told, "", *_lines(("figure", "goal", "measured", "met"), rows), ""]


def _machines(recorded: Recorded) -> list[str]:
    """The machine and its settings; more than one only when measures were recorded apart."""
    told = [
        f"{facts['cores']} cores ({facts['processor']}), {facts['memory_gb']} GB of memory, "
        f"PostgreSQL {facts['server_version']} with {facts['shared_buffers']} of shared buffers, "
        f"`fsync` {facts['fsync']}, `synchronous_commit` {facts['synchronous_commit']}, "
        f"Python {facts['python']}."
        for facts in (each.facts for each in recorded.measures.values())
    ]
    return [*dict.fromkeys(told), ""]


def _measure(measure: str, recording: Recording) -> list[str]:
    facts = recording.facts
    jobs = max((each.jobs for each in recording.results), default=0)
    made_of = f"{jobs:,} jobs; " if jobs else ""
    told = f"{made_of}rounds: {recording.rounds}; {facts['at'][:10]}, commit {facts['commit']}."
    title = TITLES[measure]
    made = table(recording.results, measure)
    heading = f"## {title[0].upper()}{title[1:]}"
    return [heading, "", *_lines(made.headings, made.rows, numbers=True), "", told, ""]


def _absent(recorded: Recorded) -> list[str]:
    """Who is missing where, those with the same reason on one line."""
    missing: dict[tuple[str, str], list[str]] = {}
    for measure, recording in recorded.measures.items():
        for name, why in recording.absent.items():
            missing.setdefault((why, name), []).append(measure)
    alike: dict[tuple[str, str], list[str]] = {}
    for (why, name), measures in missing.items():
        alike.setdefault((why, ", ".join(measures)), []).append(name_of(name))
    rows = [(", ".join(names), measures, why) for (why, measures), names in alike.items()]
    rows += [(name, "all", why) for name, why in NOT_MEASURED.items()]
    return ["## Not measured", "", *_lines(("queue", "measure", "why"), rows), ""]


def _lines(
    headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = False
) -> list[str]:
    rule = ["---"] + ["--:" if numbers else "---"] * (len(headings) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
