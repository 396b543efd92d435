"""The demonstration as a newcomer runs it, only shorter."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from rich.console import Console

from leasebook.infra.cli.demo_run import LOCK, read_events
from leasebook.infra.cli.demo_view import DEPTHS, WORDS, Moment, draw, live, report_panel
from leasebook.projections.story import Line
from tests.support.workers import DEADLINE_SECONDS, eventually, running

COMMAND = (sys.executable, "-m", "leasebook.infra.cli", "demo")
STORY = [
    Line(None, None, "", "job 1: sync_page"),
    Line(datetime(2026, 3, 1, tzinfo=UTC), 1, "2026-03-01 00:00:00.000", "opened " + "word " * 30),
    Line(datetime(2026, 3, 1, tzinfo=UTC), 2, "00:00:01.000", "leased by ada"),
]
REPORT = {**dict.fromkeys(WORDS, 12_345), "seconds": 25.1}


@pytest.mark.fault
@pytest.mark.acceptance("E04")
def test_a_worker_is_killed_and_nothing_is_lost(database_dsn: str) -> None:
    # The second run finds what the first has left: its schema.
    for events in (1_500, 200):
        done = subprocess.run(
            [*COMMAND, "--json", "--events", str(events), "--dsn", database_dsn],
            capture_output=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr.decode()
        report = json.loads(done.stdout)
        assert report["events"] == events
        assert report["lost_events"] == report["violations"] == 0
        assert report["runs_saved"] == events - report["groups"]
        if events == 1_500:
            assert report["leases_lost"] >= 1
            assert report["leases_rerun"] == report["leases_lost"]
            story = "\n".join(report["story"])
            assert "lease ended without an answer: its worker died" in story
            assert "leased by ada" in story
            assert "done after" in story
    with psycopg.connect(database_dsn) as connection:
        waiting = connection.execute("select count(*) from leasebook_demo.jobs").fetchone()
        assert waiting == (0,)
        other = connection.execute("select count(*) from leasebook.job_events").fetchone()
        assert other == (0,), "the application's own schema is left alone"


@pytest.mark.fault
def test_a_second_demo_is_refused(database_dsn: str) -> None:
    with psycopg.connect(database_dsn, autocommit=True) as first:
        first.execute(LOCK)
        second = subprocess.run(
            [*COMMAND, "--dsn", database_dsn], capture_output=True, timeout=DEADLINE_SECONDS
        )
    assert second.returncode == 2
    assert b"another demo runs in this database" in second.stderr
    assert b"Traceback" not in second.stderr


@pytest.fixture
def demo(database_dsn: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo with its two workers at work."""
    process = subprocess.Popen(
        [*COMMAND, "--dsn", database_dsn],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Killed, it leaves its folder for logs behind.
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        with psycopg.connect(database_dsn, autocommit=True) as connection:
            eventually(lambda: _enrolled(connection) == 2, "two workers are enrolled")
        yield process
    finally:
        process.kill()
        process.communicate()


def _enrolled(connection: psycopg.Connection[tuple[int]]) -> int:
    try:
        row = connection.execute("select count(*) from leasebook_demo.workers").fetchone()
    except psycopg.errors.UndefinedTable:
        return 0
    return 0 if row is None else row[0]


def descendants(pid: int) -> list[int]:
    """The processes that this one started, and theirs: workers and their heartbeat children."""
    children = [int(each) for each in _children(pid)]
    return children + [one for child in children for one in descendants(child)]


def _children(pid: int) -> Iterator[str]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        yield from (task / "children").read_text("utf-8").split()


@pytest.mark.fault
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_no_process_stays_behind(
    demo: subprocess.Popen[bytes], number: signal.Signals, code: int
) -> None:
    eventually(lambda: len(descendants(demo.pid)) == 4, "each worker has its heartbeat child")
    workers = descendants(demo.pid)
    demo.send_signal(number)
    _, told = demo.communicate(timeout=DEADLINE_SECONDS)
    assert demo.returncode == code
    assert b"Traceback" not in told
    eventually(lambda: not any(map(running, workers)), "workers and heartbeat children are gone")


@pytest.mark.fault
def test_a_worker_that_ends_by_itself_is_told_with_its_log(
    demo: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    eventually(
        lambda: any(log.stat().st_size for log in tmp_path.glob("leasebook-demo-*/grace.log")),
        "the worker has logged something",
    )
    (grace,) = [
        pid
        for pid in map(int, _children(demo.pid))
        if b"\0grace\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(grace, signal.SIGKILL)
    _, told = demo.communicate(timeout=DEADLINE_SECONDS)
    assert demo.returncode == 1
    assert b"worker grace ended with code -9. Its log ends:" in told
    assert b'"logger": "leasebook.worker"' in told
    assert b"Traceback" not in told


def drawn(width: int, renderable: object) -> list[str]:
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().splitlines()


def test_the_live_view_fits_a_small_terminal() -> None:
    depth = dict[str, int](zip(DEPTHS, (0, 1, 123_456, 40, 7, 9, 0), strict=True))
    note = "ada was killed (SIGKILL) in the middle of 30 runs; edith came"
    moment = Moment(12.3, 12_835, 5_000, 812.0, 2_040, 299.0, 30, depth, note)
    lines = drawn(80, live(moment))
    assert len(lines) <= 22
    assert all(len(line) == 80 for line in lines)
    words = " ".join("".join(lines).split())
    assert "events accepted 5,000 812/s of 12,835" in words
    assert "runs done 2,040 299/s" in words
    assert "123,456" in words
    assert note in "".join(lines)
    assert str(moment).startswith(" 12 s: 5,000 of 12,835 events accepted, 2,040 runs done")


def test_the_report_wraps_the_story_between_words(tmp_path: Path) -> None:
    lines = drawn(80, report_panel(REPORT, STORY))
    assert all(len(line) == 80 for line in lines)
    told = [line[2:-2].rstrip() for line in lines]
    assert "2026-03-01" in told
    (wrapped,) = [line for line in told if line.startswith("00:00:00.000")]
    assert wrapped.endswith(" word"), "no word is cut"
    assert told[told.index(wrapped) + 1].startswith(" " * 14 + "word")
    assert any("times are " in line for line in lines)
    draw(tmp_path / "demo.svg", REPORT, STORY)
    assert "make&#160;demo" in (tmp_path / "demo.svg").read_text("utf-8")


def test_the_events_are_real_and_in_order() -> None:
    events = read_events(None)
    assert len(events) == 12_835
    assert len(read_events(10)) == 10
    assert all(one.at <= later.at for one, later in pairwise(events))
    assert events[-1].at - events[0].at > timedelta(days=1)
