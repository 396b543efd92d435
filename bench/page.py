"""The part of ``docs/speed.md`` that is made from ``recorded.json``, and the chart beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .chart import chart
from .environments import TOP
from .goals import verdicts
from .peers import NOT_MEASURED
from .recorded import Recorded, Recording
from .result import TITLES, Result
from .tables import table

PAGE = TOP / "docs" / "speed.md"
CHART = TOP / "docs" / "images" / "speed.svg"
BEGIN = "<!-- from here on made from bench/recorded.json by `make bench` -->"
END = "<!-- to here -->"
#: What a recording of the usual size is called when it is not a full one.
SHORT = (
    "**These are the figures of a short run that shows how the page is made; take none from it.** "
    'The full one is `make bench ARGS="--record"`.'
)


def made(recorded: Recorded) -> str:
    """The text between the marks."""
    parts = [BEGIN, ""]
    if any(each.size != "full" for each in recorded.measures.values()):
        parts += [SHORT, ""]
    parts += ["![Speed beside other queues](images/speed.svg)", "", *_goals(recorded.results)]
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
    rows = [
        (each.what, each.goal, each.seen, "yes" if each.met else "**no**")
        for each in verdicts(results)
    ]
    met = sum(row[3] == "yes" for row in rows)
    told = f"{met} of the {len(rows)} goals are met."
    return ["## Goals", "", told, "", *_lines(("figure", "goal", "measured", "met"), rows), ""]


def _measure(measure: str, recording: Recording) -> list[str]:
    facts = recording.facts
    jobs = max((each.jobs for each in recording.results), default=0)
    made_of = f"{jobs:,} jobs, " if jobs else ""
    told = (
        f"{made_of}rounds: {recording.rounds}. {facts['at'][:10]}, leasebook {facts['commit']}, "
        f"PostgreSQL {facts['server_version']}, {facts['cores']} cores ({facts['processor']}), "
        f"Python {facts['python']}."
    )
    title = TITLES[measure]
    shown = table(recording.results, measure)
    return [
        f"## {title[0].upper()}{title[1:]}",
        "",
        *_lines(shown.headings, shown.rows),
        "",
        told,
        "",
    ]


def _absent(recorded: Recorded) -> list[str]:
    missing: dict[str, list[str]] = {}
    for measure, recording in recorded.measures.items():
        for name, why in recording.absent.items():
            missing.setdefault(f"{name}: {why}", []).append(measure)
    rows = [(*told.split(": ", 1), ", ".join(where)) for told, where in missing.items()]
    rows += [(name, why, "all") for name, why in NOT_MEASURED.items()]
    return ["## Not measured", "", *_lines(("queue", "why", "measures"), rows), ""]


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    rule = ["---"] + ["--:"] * (len(headings) - 1)
    return [f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows)]
