"""An incident report: what is in the page, what must not be, and who suffered most."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import count

import pytest

from leasebook.domain import Recorded
from leasebook.projections.incident.over_time import WaitsOverTime
from leasebook.projections.incident.page import page
from leasebook.projections.incident.pictures import COLOURS
from leasebook.projections.incident.suffering import Suffering
from leasebook.projections.incident.values import Incident, Sufferer, changes_within
from leasebook.projections.replay.depth import depth_over_time
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.replay.faults import faults
from leasebook.projections.replay.runs import runs
from leasebook.projections.replay.totals import Totals
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.replay.waits import waits
from leasebook.projections.replay.workers import workforce
from tests.support.facts import died, line, log, refused, started
from tests.support.lives import Life, at, item, job_id

SECRET = "the argument"
NASTY = "<script>alert('x')</script>"


def told(events: list[Recorded], *lines: AuditLine) -> Incident:
    """The values of a report from 0 to 60 s, as the command gathers them."""
    since, until = at(0), at(60)
    facts = gather(lines)
    totals, over_time, suffering = (
        Totals(1),
        WaitsOverTime(since, until, 6),
        Suffering(since, until),
    )
    for wait in waits(events, facts, until):
        totals.add(wait)
        over_time.add(wait)
        suffering.add_wait(wait)
    suffering.add_runs(runs(events))
    found = faults(runs(events), facts, since, until)
    suffering.add_duplicates(found.duplicates)
    return Incident(
        since,
        until,
        ["--queue default"],
        depth_over_time(events, since, until, 100),
        totals,
        over_time,
        found,
        workforce(runs(events), facts, until),
        changes_within(lines, since, until),
        [
            Sufferer(each, [one for one in events if one.job_id == each.job_id])
            for each in suffering.most(10)
        ],
    )


def bad_minute() -> Incident:
    events = count(1)
    ours = log(
        Life(events).enqueue(0, number=1, label=NASTY).lease(1).expire(10).lease(12, "w2")
        .complete(20),
        Life(events).enqueue(2, number=2, retries=0, args=f'"{SECRET}"').lease(20.25, "w2")
        .fail(21, f"KeyError: {NASTY} {SECRET[:3]}"),
        Life(events).enqueue(3, number=3, name="send", queue=NASTY).lease(40, "w2").complete(41),
        Life(events).open_group(item(1, 3), seconds=3, number=4).lease(50, "w2").complete(51),
        Life(events).enqueue(50, number=5),
    )  # fmt: skip
    return told(
        ours,
        started(-60),
        died(10),
        started(11, "w2", queues=("default", NASTY)),
        refused(15.5, 1, lease=2),
        line(30, "queue_paused", queue=NASTY),
        line(31, "limit_changed", queue="default", limit=3),
    )


class Reader(HTMLParser):
    """Checks that elements are closed in order, and collects what a reader meets."""

    VOID = frozenset({"meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        for tag in self.open:
            self.texts.setdefault(tag, []).append(data)

    def all(self, tag: str) -> list[str]:
        return self.texts.get(tag, [])


@pytest.mark.acceptance("E09")
def test_the_page_tells_everything() -> None:
    text = page(bad_minute())
    read = Reader(text)
    assert read.all("h2") == [
        "Depth over time",
        "Waits",
        "Failures",
        "Lost leases and double runs",
        "Workers",
        "Control changes",
        "The jobs that suffered most",
    ]
    captions = read.all("caption")
    for caption in ("Lost leases", "Runs beside another of their job", "Control changes"):
        assert caption in captions
    cells = "|".join(read.all("td"))
    for cell in ("no worker", "busy", "3.5 s", "worker found dead", "noticed by w9", "3 at once"):
        assert cell in cells, cell
    assert "w1 (start 1)|w2 (start 2)" in cells
    facts = dict(zip(read.all("dt"), read.all("dd"), strict=True))
    assert facts == {
        "starts": "5",
        "still waiting": "1",
        "longest wait": "47 s",
        "failed runs": "1",
        "lost leases": "1",
        "double runs": "1",
        "ran twice at once for": "3.5 s",
        "late writes refused": "1",
        "slow workers": "0",
    }
    (first, *_) = read.all("article")
    assert str(job_id(2)) in first, "it failed for good"
    assert "--queue default" in text


@pytest.mark.acceptance("E09")
def test_nothing_is_run_and_nothing_is_asked_for() -> None:
    text = page(bad_minute())
    read = Reader(text)
    assert "<script" not in text
    assert "&lt;script&gt;" in text, "what is nasty is shown, and does nothing"
    assert "default-src 'none'" in next(
        value for tag, name, value in read.attributes if (tag, name) == ("meta", "content")
    ).replace("&#x27;", "'")
    links = [value for _, name, value in read.attributes if name in ("href", "src")]
    assert all(link.startswith("#") for link in links)
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {
        f"#hatch-{cause.name.lower().replace('_', '-')}" for cause in Cause
    }
    ids = {value for _, name, value in read.attributes if name == "id"}
    assert {link[1:] for link in links} <= ids


def test_arguments_are_not_in_it() -> None:
    assert SECRET not in page(bad_minute())


def test_a_page_for_people_who_do_not_see_it() -> None:
    text = page(bad_minute())
    read = Reader(text)
    assert (
        text.count("<table>") == text.count("<caption><span>") == len(re.findall("<thead>", text))
    )
    pictures = re.findall(r"<svg [^>]*role=\"img\"[^>]*>\s*<title>[^<]+</title>", text)
    assert len(pictures) == text.count("<svg ") == 2
    scopes = [value for tag, name, value in read.attributes if (tag, name) == ("th", "scope")]
    assert set(scopes) == {"col"}
    assert len(set(COLOURS.values())) == len(COLOURS) == len(Cause), "no two causes look alike"


def test_a_quiet_window() -> None:
    text = page(told([], started(-60)))
    read = Reader(text)
    told_ = "".join(read.all("p"))
    for words in ("No job waited", "No run failed", "No lease was lost", "No job lost any time"):
        assert words in told_
    assert "no job was open" in text


def test_an_endless_story_is_cut_in_front() -> None:
    life = Life().enqueue(retries=200)
    for number in range(40):
        life.lease(number + 0.5).fail(number + 0.6, delay=0)
    text = page(told(log(life), started(-60)))
    assert "21 earlier lines left out." in text
    assert text.count('class="at"') == 60


def test_long_tables_are_cut() -> None:
    events = count(1)
    lives = [Life(events).enqueue(0, number=number).lease(1).expire(2) for number in range(1, 131)]
    text = page(told(log(*lives), started(-60, capacity=200)))
    assert "… and 30 more, which leasebook replay shows." in text
    assert text.count("<article") == 10


def test_who_suffered_most() -> None:
    events = count(1)
    suffering = Suffering(at(0), at(60))
    ours = log(
        Life(events).enqueue(0, number=1).lease(5).complete(6),
        Life(events).enqueue(0, number=2).lease(1).fail(9, delay=20).lease(30).complete(31),
        Life(events).enqueue(0, run_at=50, number=3).lease(50).complete(51),
        Life(events).enqueue(0, number=4, retries=0).lease(0).fail(0.5),
        Life(events).enqueue(-90, number=5).lease(-80).fail(1, delay=0),
    )
    for wait in waits(ours, gather([started(-99, capacity=9)]), at(60)):
        if wait.started is None or wait.started >= at(0):
            suffering.add_wait(wait)
    suffering.add_runs(runs(ours))
    most = suffering.most(9)
    assert [each.job_id for each in most] == [job_id(each) for each in (4, 5, 2, 1)]
    assert [(each.waited, each.wasted) for each in most] == [
        (0, 500_000),
        (59_000_000, 1_000_000),
        (1_000_000 + 21_000_000, 8_000_000),
        (5_000_000, 0),
    ]
