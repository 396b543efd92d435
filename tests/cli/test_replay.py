"""`leasebook replay` on an incident of which every second is known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from leasebook.infra.cli.replay import sources
from tests.cli.conftest import Answer, Leasebook
from tests.support.facts import refused
from tests.support.incident import FROM, UNTIL, WINDOW, incident, tell
from tests.support.lives import at, job_id
from tests.support.source import TOP
from tests.support.standing import fill


@pytest.fixture
def dsn(database_dsn: str) -> str:
    incident(database_dsn)
    return database_dsn


@pytest.fixture
def replay(leasebook: Leasebook, dsn: str) -> Leasebook:
    def run(*words: str) -> Answer:
        return leasebook("replay", *words, "--dsn", dsn)

    return run


def records(answer: Answer) -> list[dict[str, Any]]:
    """The records of an answer in ``json``."""
    found: list[dict[str, Any]] = answer.document["records"]
    return found


@pytest.mark.acceptance("E08")
def test_wait_tells_what_it_was_spent_on(replay: Leasebook) -> None:
    answer = replay("wait", *WINDOW)
    assert answer.code == 0
    first, heading, *rows = answer.out.splitlines()
    assert first == "5 starts, 2 jobs still waiting"
    assert heading.split("  ")[0] == "waited for"
    told = {row[:12].strip(): row[12:].split()[0] for row in rows[:6]}
    assert told == {
        "retry wait": "1",
        "group hold": "1",
        "no worker": "3",
        "busy": "3",
        "behind": "3",
        "dispatch": "6",
    }
    second = next(row for row in rows if str(job_id(2)) in row and "not yet" not in row)
    assert second.endswith("no worker 1 s, busy 16 s, behind 1 s, dispatch 250 ms")


@pytest.mark.acceptance("E08")
def test_wait_for_programs_sums_exactly(replay: Leasebook) -> None:
    found = records(replay("wait", "--format", "json", *WINDOW))
    for wait in found:
        assert sum(each["microseconds"] for each in wait["segments"]) == wait["microseconds"]
    (second,) = [each for each in found if each["job"] == str(job_id(2)) and each["started"]]
    assert second["microseconds"] == 18_250_000
    lines = replay("wait", "--format", "ndjson", *WINDOW).out.splitlines()
    assert [json.loads(line) for line in lines] == found
    (only,) = records(replay("wait", "--job", str(job_id(2)), "--worker", "grace", *_json()))
    assert only == second, "others still stand ahead of it"


def _json() -> tuple[str, ...]:
    return ("--format", "json", *WINDOW)


def test_wait_in_a_part_of_the_window(replay: Leasebook) -> None:
    part = ("--from", at(25).isoformat(), "--to", at(35).isoformat(), "--format", "json")
    found = records(replay("wait", *part))
    started = {each["job"]: each["started"] is not None for each in found}
    assert started == {
        str(job_id(2)): False,
        str(job_id(3)): True,
        str(job_id(4)): False,
    }
    assert replay("wait", *WINDOW, "--limit", "0").out.count("\n") == 8
    assert "these are the 2 longest" in replay("wait", *WINDOW, "--limit", "2").out


def test_what_happened_before_the_window_is_looked_back_at(replay: Leasebook) -> None:
    """Job 1 was over when the window began, and it is what kept job 4 waiting."""
    late = ("--from", at(35).isoformat(), "--to", at(45).isoformat(), "--format", "json")
    (wait,) = [each for each in records(replay("wait", *late)) if each["started"]]
    assert {each["cause"]: each["microseconds"] for each in wait["segments"]} == {
        "group hold": 10_000_000,
        "busy": 8_750_000,
        "behind": 250_000,
        "dispatch": 18_000_000,
    }
    hours = ("--from", at(7_000).isoformat(), "--to", at(8_000).isoformat(), "--format", "json")
    waiting = next(each for each in records(replay("wait", *hours)) if each["job"][-1] == "5")
    assert {each["cause"]: each["microseconds"] for each in waiting["segments"]} == {
        "unknown": (7_000 - 3_600 - 50) * 1_000_000,
        "dispatch": (8_000 - 3_400) * 1_000_000,
    }


@pytest.mark.acceptance("E07")
def test_job_at_a_version_and_at_a_moment(replay: Leasebook) -> None:
    job = str(job_id(1))
    answer = replay("job", job, "--version", "3")
    assert answer.code == 0
    *story, last = answer.out.splitlines()
    assert len(story) == 6
    assert story[2] == 'arguments: {"path":"a.md"}'
    assert last.startswith("queued at version 3, to the public queued; 1 start, 1 of its attempts")
    answer = replay("job", job, "--at", at(15).isoformat())
    assert "leased at version 4, to the public processing" in answer.out
    assert "lease 4 of grace#2" in answer.out
    *events, state = records(replay("job", job, "--format", "json"))
    assert [each["kind"] for each in events][-2:] == ["leased", "completed"]
    assert (state["record"], state["state"], state["status"]) == ("job", "done", "succeeded")
    assert "args" not in state


def test_a_version_that_is_not_there(replay: Leasebook) -> None:
    answer = replay("job", str(job_id(1)), "--version", "99")
    assert (answer.code, answer.out) == (1, "")
    assert "at version 99: it is at version" in answer.err


def test_a_job_that_was_not_there(replay: Leasebook) -> None:
    answer = replay("job", str(job_id(5)), "--at", at(49).isoformat())
    assert (answer.code, answer.out) == (1, "")
    assert str(job_id(5)) in answer.err
    assert replay("job", str(job_id(99))).code == 1


@pytest.mark.acceptance("E07")
def test_the_whole_queue_as_of_a_moment(replay: Leasebook) -> None:
    answer = replay("at", at(23).isoformat())
    assert answer.code == 0
    first, heading, default, mail, _, _, *jobs = answer.out.splitlines()
    assert first == "as of 2026-03-01 14:03:45.115Z: 3 open jobs"
    assert heading.split() == ["queue", "grouped", "queued", "leased", "retry-wait", "held"]
    assert default.split() == ["default", "1", "0", "0", "1", "0"]
    assert mail.split() == ["mail", "0", "1", "0", "0", "0"]
    assert [job.split()[0] for job in jobs] == [str(job_id(number)) for number in (3, 4, 2)]
    found = records(replay("at", at(13).isoformat(), "--format", "json"))
    assert {each["job"]: each["standing"] for each in found} == {
        str(job_id(1)): "leased",
        str(job_id(2)): "queued",
        str(job_id(3)): "queued",
        str(job_id(4)): "grouped",
    }
    assert "0 open jobs" in replay("at", at(-1).isoformat()).out
    assert "… and 2 more" in replay("at", at(23).isoformat(), "--limit", "1").out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--queue", "mail"], [3]),
        (["--name", "nosuch"], []),
        (["--key", "one"], [1]),
        (["--group", "a.md"], [4]),
        (["--worker", "grace"], [1]),
        (["--worker", "grace#2"], [1]),
        (["--job", str(job_id(2))], [2]),
    ],
)
def test_filters(replay: Leasebook, words: list[str], expected: list[int]) -> None:
    found = records(replay("at", at(13).isoformat(), "--format", "json", *words))
    assert [each["job"] for each in found] == [str(job_id(number)) for number in expected]


@pytest.mark.acceptance("E09")
def test_depth(replay: Leasebook, tmp_path: Path) -> None:
    answer = replay("depth", *WINDOW, "--svg", "depth.svg")
    assert answer.code == 0
    lines = {line[:18].strip(): line[18:].split()[:2] for line in answer.out.splitlines()[2:]}
    assert lines["default queued"] == ["2", "1"]
    assert lines["mail held"] == ["1", "1"]
    picture = ElementTree.parse(tmp_path / "depth.svg").getroot()
    assert picture.tag.endswith("svg")
    found = records(replay("depth", *_json(), "--points", "3", "--queue", "mail"))
    queued = [each["jobs"] for each in found if each["standing"] == "queued"]
    assert queued == [1, 1, 0]
    assert {each["queue"] for each in found} == {"mail"}
    assert "no job was open" in replay("depth", "--queue", "nosuch", *WINDOW).out


@pytest.mark.acceptance("E09")
def test_faults(replay: Leasebook) -> None:
    answer = replay("faults", *WINDOW)
    assert answer.code == 1
    for line in ("1 lost lease", "1 run beside another of its job", "1 late write refused"):
        assert line in answer.out.splitlines()
    assert "KeyError: '…' in row <n>" in answer.out
    found = {each["record"]: each for each in records(replay("faults", *_json()))}
    assert found["duplicate_run"]["overlap_seconds"] == 3.5
    assert found["duplicate_run"]["first_worker"] == "ada#1"
    assert found["lost_lease"]["started_again"] == "2026-03-01T14:03:34.115000+00:00"
    assert (found["error"]["runs"], found["error"]["jobs"]) == (2, 2)
    assert found["refused_write"]["lease"] == 2


def test_faults_of_a_worker_a_job_and_a_quiet_time(replay: Leasebook) -> None:
    def kinds(*words: str) -> list[str]:
        return [each["record"] for each in records(replay("faults", *_json(), *words))]

    assert kinds("--worker", "ada") == ["lost_lease", "duplicate_run", "refused_write"]
    assert kinds("--worker", "grace") == ["duplicate_run", "error"]
    assert kinds("--job", str(job_id(3))) == ["error"]
    answer = replay("faults", "--from", at(50).isoformat(), "--to", UNTIL)
    assert (answer.code, answer.out.count("\n")) == (0, 1)


def test_a_write_that_came_after_its_job_had_ended(replay: Leasebook, dsn: str) -> None:
    tell(dsn, refused(52, 1, lease=2, worker="ada#1"))
    window = ("--from", at(50).isoformat(), "--to", UNTIL, "--format", "json")
    assert [each["record"] for each in records(replay("faults", *window))] == ["refused_write"]
    assert records(replay("faults", *window, "--queue", "mail")) == []
    assert records(replay("faults", *window, "--job", str(job_id(2)))) == []


@pytest.mark.acceptance("E09")
def test_workers(replay: Leasebook) -> None:
    answer = replay("workers", *WINDOW)
    assert answer.code == 0
    _, ada, grace = (line.split() for line in answer.out.splitlines())
    assert ada[:9] == ["ada#1", "1", "1", "0", "0", "0", "1", "1", "0"]
    assert grace[:9] == ["grace#2", "1", "4", "2", "2", "0", "0", "0", "0"]
    (worker,) = records(replay("workers", *_json(), "--worker", "ada"))
    assert (worker["died"], worker["capacity"], worker["refused"]) == (True, 1, 1)


@pytest.mark.acceptance("E09")
def test_timeline(replay: Leasebook, tmp_path: Path) -> None:
    answer = replay("timeline", *WINDOW, "--trace", "trace.json")
    assert answer.code == 0
    *_, ada, grace = answer.out.splitlines()
    assert ada.startswith("ada#1 0   | !!!!")
    assert "X" in grace
    trace = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert next(each["dur"] for each in trace if each["ph"] == "X") == 9_000_000
    found = records(replay("timeline", *_json(), "--worker", "grace"))
    assert {each["slot"] for each in found} == {0}
    assert len(found) == 4
    quiet = replay("timeline", "--from", at(50).isoformat(), "--to", UNTIL)
    assert quiet.out.endswith("nothing ran\n")


@pytest.mark.acceptance("E09")
def test_the_difference_of_two_moments(replay: Leasebook) -> None:
    answer = replay("diff", at(10).isoformat(), UNTIL)
    assert answer.code == 0
    assert answer.out.splitlines()[0].endswith(": 5 jobs changed")
    assert "mail     queued   held           1" in answer.out
    found = records(replay("diff", at(40).isoformat(), UNTIL, "--format", "json"))
    moved = [(each["job"], each["before"], each["after"]) for each in found]
    assert moved == [
        (str(job_id(4)), "leased", "done"),
        (str(job_id(5)), "absent", "queued"),
    ]
    assert replay("diff", UNTIL, FROM).code == 2


@pytest.mark.unchecked("an event is added behind the domain's back")
def test_check(replay: Leasebook, dsn: str) -> None:
    answer = replay("check", "--to", UNTIL)
    assert (answer.code, answer.out.split(" in ")[0]) == (0, "0 violations")
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into leasebook.job_events (job_id, version, at, kind, lease, due_at)"
            " values (%s, 2, %s, 'heartbeat.v1', 1, %s)",
            (job_id(5), at(55), at(70)),
        )
    assert replay("check", "--to", at(54).isoformat()).code == 0, "it had not happened yet"
    answer = replay("check", "--to", UNTIL)
    assert answer.code == 1
    assert f"broken by job {job_id(5)}" in answer.out
    found = records(replay("check", "--to", UNTIL, "--format", "json"))
    assert {each["record"] for each in found} == {"violation"}


def test_the_last_day_when_nothing_is_said(leasebook: Leasebook, database_dsn: str) -> None:
    ids = fill(database_dsn)
    env = {"LEASEBOOK_DSN": database_dsn}
    answer = leasebook("replay", "faults", env=env)
    assert answer.code == 1
    assert "Broken: job <uuid>" in answer.out
    now = leasebook("replay", "at", "--format", "json", env=env).document["records"]
    assert {each["job"] for each in now} == {
        str(job) for name, job in ids.items() if name != "done"
    }
    assert "0 open jobs" in leasebook("replay", "at", "-7d", env=env).out
    early = leasebook("replay", "depth", "--from", "-2h", "--to", "-90m", env=env)
    assert "no job was open" in early.out
    assert "8 jobs changed" in leasebook("replay", "diff", "-2h", env=env).out
    assert "0 jobs changed" in leasebook("replay", "diff", "-3h", "-2h", env=env).out
    assert "7 open jobs" in leasebook("replay", "at", "-0s", "--limit", "1", env=env).out
    assert "0 open jobs" in leasebook("replay", "at", "--queue", "-2h", "-0s", env=env).out
    assert leasebook("replay", "at", "-h", env=env).out.startswith("Usage: ")
    assert "ada#000000000001 0" in leasebook("replay", "timeline", env=env).out
    assert "default leased" in leasebook("replay", "depth", env=env).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["at", "yesterday"], "'yesterday' is no moment: write 2026-03-01T14:00:00Z, or -15m"),
        (["at", "2026-03-01T14:00:00"], "says no time zone: add Z"),
        (["wait", "--from", "-15x"], "'-15x' is no moment"),
        (["wait", "--from", "-99999999999d"], "is no moment"),
        (["wait", "--from", "now", "--to", "-15m"], "later than --to"),
        (["depth", "--points", "0"], "--points"),
        (["faults", "--format", "xml"], "--format"),
        (["diff"], "Missing argument 'EARLIER'"),
        (["diff", "--nosuch", "-2h"], "No such option"),
        (["nosuch"], "No such command 'nosuch'"),
        (["job", str(job_id(1)), "--queue", "mail"], "No such option"),
        (["check", "--queue", "mail"], "No such option"),
        (["check", "--from", "-2h"], "No such option"),
        (["depth", "--worker", "ada"], "No such option"),
        (["diff", "-2h", "--worker", "ada"], "No such option"),
        (["export", "x.zip", "--worker", "ada"], "No such option"),
    ],
)
def test_what_is_refused(replay: Leasebook, words: list[str], message: str) -> None:
    answer = replay(*words)
    assert (answer.code, answer.out) == (2, "")
    assert message in " ".join(answer.err.split())


def test_too_many_events(replay: Leasebook) -> None:
    answer = replay("faults", *WINDOW, "--max-events", "4")
    assert (answer.code, answer.out) == (2, "")
    assert "more than 4 events to read. Give a later --from or one --job" in answer.err
    answer = replay("faults", *_json(), "--max-events", "4")
    assert answer.document["error"]["code"] == "too_many_events"


def test_an_old_snapshot(replay: Leasebook, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "OLD_SNAPSHOT_SECONDS", 0.0)
    with psycopg.connect(dsn) as other:
        other.execute("set transaction isolation level repeatable read")
        other.execute("select 1")
        answer = replay("depth", *WINDOW)
        assert (answer.code, answer.out) == (2, "")
        assert f"pid {other.info.backend_pid}" in answer.err
        assert replay("depth", *WINDOW, "--anyway").code == 0


def test_no_database(leasebook: Leasebook) -> None:
    answer = leasebook("replay", "faults", "--dsn", "postgresql://nobody@127.0.0.1:1/x")
    assert (answer.code, answer.out) == (3, "")


def test_the_page_shows_what_is_printed(replay: Leasebook) -> None:
    """The incident in the documentation is this one."""
    page = (TOP / "docs" / "replay.md").read_text("utf-8")
    shown = re.findall(r"^    \$ leasebook replay (.*)\n((?:(?:    .*)?\n)+)", page, re.MULTILINE)
    assert len(shown) == 4
    for command, printed in shown:
        lines = [line.removeprefix("    ") for line in printed.rstrip().splitlines()]
        answer = replay(*command.split())
        assert [line.rstrip() for line in answer.out.rstrip().splitlines()] == lines


CONTROLS = """
insert into leasebook.audit_log (at, kind, detail) values
       (%(paused)s, 'queue_paused', '{"queue": "default"}'),
       (%(paused)s, 'schedule_changed', '{"schedule": "nightly", "cron": "0 3 * * *"}'),
       (%(resumed)s, 'queue_resumed', '{"queue": "default"}'),
       (%(resumed)s, 'limit_changed', '{"queue": "mail", "limit": 0}'),
       (%(lifted)s, 'limit_changed', '{"queue": "mail", "limit": null}')
"""


@pytest.mark.acceptance("E08", "E09", "E10")
def test_control_changes_that_somebody_writes_are_read(
    replay: Leasebook, leasebook: Leasebook, database_dsn: str, tmp_path: Path
) -> None:
    """From the audit log into waits and the page of an incident, and so from a bundle."""
    moments = {"paused": at(52), "resumed": at(55), "lifted": at(58)}
    with psycopg.connect(database_dsn) as connection:
        connection.execute(CONTROLS, moments)
    asked = (*WINDOW, "--format", "json", "--limit", "100")
    live = records(replay("wait", *asked))
    waiting = next(each for each in live if each["job"] == str(job_id(5)))
    found = {each["cause"]: each["microseconds"] for each in waiting["segments"]}
    assert found["paused"] == 3_000_000
    assert sum(found.values()) == 10_000_000
    assert replay("export", "it.zip", *WINDOW).code == 0
    assert records(leasebook("replay", "wait", "--bundle", "it.zip", *asked)) == live
    for where in (("--dsn", database_dsn), ("--bundle", "it.zip")):
        assert leasebook("incident", *WINDOW, "--out", "page.html", *where).code == 1
        page = (tmp_path / "page.html").read_text("utf-8")
        for told in ("queue paused", "queue resumed", "0 at once", "no limit", "0 3 * * *"):
            assert told in page
        (tmp_path / "page.html").unlink()
