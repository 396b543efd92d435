"""`leasebook incident` and `leasebook simulate` on an incident of which every second is known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from leasebook.infra.cli.replay import sources
from tests.cli.conftest import Answer, Leasebook
from tests.support.incident import WINDOW, incident
from tests.support.lives import at, job_id
from tests.support.source import TOP
from tests.support.standing import fill


@pytest.fixture
def dsn(database_dsn: str) -> str:
    incident(database_dsn)
    return database_dsn


@pytest.fixture
def ask(leasebook: Leasebook, dsn: str) -> Leasebook:
    def run(*words: str) -> Answer:
        return leasebook(*words, "--dsn", dsn)

    return run


@pytest.mark.acceptance("E09")
def test_a_page(ask: Leasebook, tmp_path: Path) -> None:
    answer = ask("incident", *WINDOW, "--out", "report.html")
    assert (answer.code, answer.out) == (1, "wrote report.html\n")
    page = (tmp_path / "report.html").read_text("utf-8")
    for told in ("worker found dead", "KeyError: &#x27;…&#x27; in row &lt;n&gt;", "3.5 s"):
        assert told in page
    assert page.count("<article") == 5
    assert page.index(f'id="job-{job_id(3)}"') < page.index(f'id="job-{job_id(1)}"')
    assert "a.md&quot;" not in page, "arguments are in no page"


def test_a_page_of_some_jobs_and_of_a_quiet_time(ask: Leasebook, tmp_path: Path) -> None:
    assert ask("incident", *WINDOW, "--queue", "mail", "--out", "mail.html").code == 1
    mail = (tmp_path / "mail.html").read_text("utf-8")
    assert "--queue mail" in mail
    assert str(job_id(3)) in mail
    assert str(job_id(1)) not in mail
    ada = ask("incident", *WINDOW, "--worker", "ada", "--out", "ada.html")
    assert ada.code == 1
    assert str(job_id(2)) not in (tmp_path / "ada.html").read_text("utf-8")
    quiet = ("--from", at(51).isoformat(), "--to", at(59).isoformat())
    assert ask("incident", *quiet, "--out", "quiet.html").code == 0


def test_the_last_day_when_nothing_is_said(
    leasebook: Leasebook, database_dsn: str, tmp_path: Path
) -> None:
    fill(database_dsn)
    answer = leasebook("incident", "--dsn", database_dsn, "--out", "day.html")
    assert answer.code == 1
    assert "Broken: job &lt;uuid&gt;" in (tmp_path / "day.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["incident"], "Missing option '--out'"),
        (["incident", "--out", "x.html", "--from", "now", "--to", "-1h"], "later than --to"),
        (["incident", "--out", "no/such/folder.html"], "cannot be written"),
        (["simulate", "--svg", "no/such/folder.svg", *WINDOW], "cannot be written"),
        (["replay", "depth", "--svg", "no/such/folder.svg", *WINDOW], "cannot be written"),
        (["incident", "--out", "x.html", "--max-events", "2", *WINDOW], "more than 2 events"),
        (["simulate", "--set", "nonsense"], "Write one of NAME.group.window=…"),
        (["simulate", "--set", "nosuch.retry=2", *WINDOW], "no job was there"),
        (["simulate", "--set", "send.group.window=2", *WINDOW], "no job was there"),
        (["simulate", "--set", "queue.nosuch.concurrency=2", *WINDOW], "no job was there"),
        (["simulate", "--queue", "mail"], "No such option"),
    ],
)
def test_what_is_refused(ask: Leasebook, words: list[str], message: str) -> None:
    answer = ask(*words)
    assert (answer.code, answer.out) == (2, "")
    assert message in " ".join(answer.err.split())


def test_an_old_snapshot(ask: Leasebook, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "OLD_SNAPSHOT_SECONDS", 0.0)
    with psycopg.connect(dsn) as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1")
        assert ask("incident", *WINDOW, "--out", "x.html").code == 2
        assert ask("simulate", *WINDOW).code == 2
        assert ask("simulate", *WINDOW, "--anyway").code == 0


@pytest.mark.acceptance("E09")
def test_the_baseline_alone(ask: Leasebook) -> None:
    answer = ask("simulate", *WINDOW)
    assert answer.code == 0
    _, told, _, heading, *rows = answer.out.splitlines()
    assert told == "the baseline meets all 5 recorded starts exactly"
    assert heading.split() == ["all", "jobs", "recorded", "baseline"]
    assert rows[0].split() == ["runs", "5", "5"]


@pytest.mark.acceptance("E09")
def test_another_policy(ask: Leasebook, tmp_path: Path) -> None:
    settings = ("--set", "concurrency=3", "--set", "sync_page.retry=0")
    answer = ask("simulate", *WINDOW, *settings, "--svg", "plot.svg")
    assert answer.code == 0
    rows = {row[:16].strip(): row[16:].split("  ") for row in answer.out.splitlines()[4:]}
    assert [each.strip() for each in rows["failed for good"] if each] == ["1", "3"]
    ElementTree.parse(tmp_path / "plot.svg")
    found: list[dict[str, Any]] = ask("simulate", *WINDOW, *settings, "--format", "json").document[
        "records"
    ]
    met, *measures = found
    assert (met["record"], met["exact"], met["both"]) == ("agreement", True, 5)
    worlds = {each["world"]: each for each in measures if each["name"] is None}
    assert worlds["recorded"] == worlds["baseline"] | {"world": "recorded"}
    assert (
        worlds["simulated"]["wait_max_microseconds"] < worlds["recorded"]["wait_max_microseconds"]
    )
    assert (worlds["recorded"]["items_run"], worlds["recorded"]["rate_limit_hits"]) == (1, 0)


def test_the_page_shows_what_is_printed(ask: Leasebook) -> None:
    """The incident in the documentation is this one."""
    page = (TOP / "docs" / "replay.md").read_text("utf-8")
    of_these = r"^    \$ leasebook ((?:incident|simulate) .*)\n((?:(?:    .*)?\n)+)"
    shown = re.findall(of_these, page, re.MULTILINE)
    assert len(shown) == 2
    for command, printed in shown:
        lines = [line.removeprefix("    ") for line in printed.rstrip().splitlines()]
        assert [line.rstrip() for line in ask(*command.split()).out.rstrip().splitlines()] == lines
