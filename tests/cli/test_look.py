"""stats, list, history and check on a queue whose every job is known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest

from leasebook.infra.caller_ports import Order
from leasebook.infra.cli.history import LocalZone, given
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.schema.name import Schema
from leasebook.projections.check import INVARIANTS
from tests.cli.conftest import Leasebook
from tests.conformance.making import job_id, new_spec
from tests.support.lives import Life
from tests.support.standing import fill


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in a zone with summer time, written so that it needs no zone database."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_stats(leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]) -> None:
    answer = leasebook("stats", "--dsn", database_dsn)
    assert answer.code == 0
    heading, *rows = answer.out.splitlines()
    assert heading.split("  ")[0] == "queue"
    assert [row.split()[:9] for row in rows] == [
        ["default", *"11110110"],
        ["mail", *"10000000"],
        ["pages", *"00000002"],
    ]
    assert rows[0].endswith(" ago")
    assert max(map(len, (heading, *rows))) <= 80


def test_stats_as_json(leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]) -> None:
    default, _mail, pages = leasebook("stats", "--json", "--dsn", database_dsn).document
    assert default["running"] == 1
    assert datetime.fromisoformat(default["oldest_due"]).utcoffset() is not None
    assert (pages["inbox"], pages["oldest_due"]) == (2, None)


@pytest.mark.acceptance("Q14", "A09")
def test_who_is_blocked_is_told_apart(leasebook: Leasebook, database_dsn: str) -> None:
    specs = [new_spec(number, ordering_key="page 7") for number in (1, 2, 3)]
    with psycopg.connect(database_dsn) as caller:
        accept(Schema(), caller, [Order(spec) for spec in specs])
    (queue,) = leasebook("stats", "--json", "--dsn", database_dsn).document
    assert (queue["due"], queue["blocked"], queue["delayed"]) == (1, 2, 0)
    first, *blocked = leasebook("list", "--json", "--dsn", database_dsn).document
    assert first["blocked_by"] is None
    assert [job["blocked_by"] for job in blocked] == [str(job_id(1)), str(job_id(2))]
    rows = leasebook("list", "--dsn", database_dsn).out.splitlines()
    assert "blocked" in rows[2]
    assert f"behind {job_id(1)}, key page 7" in rows[2]
    told = leasebook("history", str(job_id(3)), "--dsn", database_dsn).out
    assert str(job_id(2)) in told


def test_nothing_to_see(leasebook: Leasebook, database_dsn: str) -> None:
    env = {"LEASEBOOK_DSN": database_dsn}
    stats = leasebook("stats", env=env)
    assert (stats.code, stats.out) == (0, "nothing waits, runs or is held: every queue is empty\n")
    assert leasebook("stats", "--json", env=env).document == []
    listed = leasebook("list", env=env)
    assert (listed.code, listed.out) == (0, "no unfinished or held job matches\n")
    assert leasebook("list", "--json", env=env).document == []
    checked = leasebook("check", env=env)
    assert checked.code == 0
    assert checked.out.startswith("0 violations of I1")


def test_list_gives_each_job_a_line(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    answer = leasebook("list", "--dsn", database_dsn)
    heading, *rows = answer.out.splitlines()
    assert heading.split() == ["job", "name", "state", "when", "tries", "more"]
    told = {UUID(row.split()[0]): row for row in rows}
    assert told.keys() == set(ids.values()) - {ids["done"]}
    assert "  due 1 h" in told[ids["due"]]
    assert "label the first, subject page:1" in told[ids["due"]]
    assert "  in 59 min  " in told[ids["delayed"]]
    assert "leased  " in told[ids["running"]]
    assert "for 1 h" in told[ids["running"]]
    assert "worker ada#000000000001" in told[ids["running"]]
    assert "held: rejected" in told[ids["held"]]
    assert "3 items of a.md" in told[ids["grouped"]]
    assert "queue mail" in told[ids["mail"]]
    # Job, state, when and tries fit into 80 columns; what is nice to know comes behind.
    assert heading.index("more") <= 80


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--queue", "mail"], ["mail"]),
        (["--name", "fold"], ["grouped"]),
        (["--state", "retry-wait"], ["retrying"]),
        (["--state", "failed", "--queue", "default"], ["held"]),
        (["--state", "leased", "--name", "nosuch"], []),
    ],
)
def test_list_filters(
    leasebook: Leasebook,
    database_dsn: str,
    ids: dict[str, UUID],
    words: list[str],
    expected: list[str],
) -> None:
    jobs = leasebook("list", "--json", "--dsn", database_dsn, *words).document
    assert [UUID(job["id"]) for job in jobs] == [ids[name] for name in expected]


def test_list_as_json_and_its_limit(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    env = {"LEASEBOOK_DSN": database_dsn}
    held = leasebook("list", "--json", "--state", "failed", env=env).document[0]
    assert held["held"] is True
    assert held["outcome"] == "rejected"
    assert (held["attempts"], held["attempts_max"]) == (1, 4)
    answer = leasebook("list", "--limit", "2", env=env)
    assert len(answer.out.splitlines()) == 4
    assert answer.out.splitlines()[-1] == "these are the first 2; --limit shows more"


@pytest.mark.unchecked("a key is changed behind the log's back")
def test_a_key_with_a_line_break_stays_on_its_line(leasebook: Leasebook, database_dsn: str) -> None:
    fill(database_dsn)
    with psycopg.connect(database_dsn) as connection:
        connection.execute("update leasebook.jobs set subject = E'a\\n\\x1b[31mb'")
    answer = leasebook("list", "--dsn", database_dsn)
    assert len(answer.out.splitlines()) == 8
    assert "subject a\\n\\x1b[31mb" in answer.out


def test_history(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID], berlin: None
) -> None:
    answer = leasebook("history", str(ids["retrying"]), "--dsn", database_dsn)
    assert answer.code == 0
    heading, zone, args, born, leased, failed = answer.out.splitlines()
    assert heading == f"job {ids['retrying']}: work"
    # (On two days a year the stream goes from the one to the other.)
    assert zone.startswith(("times are CET (UTC+01:00)", "times are CEST (UTC+02:00)"))
    assert args.startswith('arguments: {"n":')
    assert "enqueued on queue default" in born
    # The worker's id is grace#000000000002; the story calls it by its name.
    assert "leased by grace (start 1, attempt 1 of 4)" in leased
    assert "Broken: job" in failed


def test_history_shows_what_went_in_and_came_out(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    done = leasebook("history", str(ids["done"]), "--dsn", database_dsn).out.splitlines()
    assert done[2] == 'arguments: {"n":5,"deep":[1,{"x":null}]}'
    assert done[-1] == 'result: {"made":[1,2]}'
    grouped = leasebook("history", str(ids["grouped"]), "--dsn", database_dsn).out.splitlines()
    assert grouped[2] == "items: 0, 1, 2"


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ('{"password":"hunter2","to":"ada"}', 'arguments: {"password":***,"to":"ada"}'),
        (r'{"url":"postgresql://ada:hunter2@db/x"}', '"postgresql://ada:***@db/x"}'),
        (r'{"text":"a\nb"}', r'arguments: {"text":"a\nb"}'),
        ('{"text":"\u2028\x1b[31m"}', r'arguments: {"text":"\u2028\x1b[31m"}'),
        (f'{{"text":"{"x" * 9_000}"}}', "…"),
    ],
)
def test_documents_are_a_line_without_secrets_and_not_long(document: str, shown: str) -> None:
    life = Life().enqueue(args=document)
    [line] = given(life.stream)
    assert shown in line
    assert "hunter2" not in line
    assert len(line) <= 600
    assert len(line.splitlines()) == 1


def test_history_as_json_holds_the_documents(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    told = leasebook("history", str(ids["done"]), "--json", "--dsn", database_dsn).document
    assert (told["job"], told["state"]) == (str(ids["done"]), "done")
    enqueued, leased, completed = told["events"]
    assert (enqueued["version"], enqueued["kind"]) == (1, "enqueued")
    assert enqueued["spec"]["args"] == {"n": 5, "deep": [1, {"x": None}]}
    assert leased["worker"] == "ada#000000000001" or leased["worker"] == "w1"
    assert completed["result"] == {"made": [1, 2]}
    assert len(told["story"]) == 4
    items = leasebook("history", str(ids["grouped"]), "--json", "--dsn", database_dsn).document
    assert items["events"][1]["items"] == [0, 1, 2]


def test_history_of_no_job(leasebook: Leasebook, database_dsn: str) -> None:
    nobody = "01900000-0000-7000-8000-00000000ffff"
    answer = leasebook("history", nobody, "--dsn", database_dsn)
    assert (answer.code, answer.out) == (1, "")
    assert nobody in answer.err
    answer = leasebook("history", nobody, "--json", "--dsn", database_dsn)
    assert answer.code == 1
    nothing: dict[str, object] = {"state": None, "pruned": None, "events": [], "story": []}
    assert answer.document == {"job": nobody, **nothing}


def test_the_local_zone_knows_summer_time(berlin: None) -> None:
    zone = LocalZone()
    winter = datetime(2026, 1, 1, 12, tzinfo=UTC).astimezone(zone)
    summer = datetime(2026, 7, 1, 12, tzinfo=UTC).astimezone(zone)
    assert (winter.hour, winter.tzname()) == (13, "CET")
    assert (summer.hour, summer.tzname()) == (14, "CEST")
    assert winter == datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.unchecked("it breaks the claim table, to see it found")
def test_check_finds_what_is_broken(
    leasebook: Leasebook, database_dsn: str, ids: dict[str, UUID]
) -> None:
    assert leasebook("check", "--dsn", database_dsn).code == 0
    with psycopg.connect(database_dsn) as connection:
        connection.execute(
            "update leasebook.jobs set attempts = 3 where id = %s", (ids["retrying"],)
        )
        connection.execute("delete from leasebook.jobs where id = %s", (ids["due"],))
    answer = leasebook("check", "--dsn", database_dsn)
    assert answer.code == 1
    assert f"I13 broken by job {ids['due']}" in answer.out
    assert "attempts is 3, by the log 1" in answer.out
    assert INVARIANTS["I13"] in answer.out
    assert "2 violations of I1" in answer.out
    answer = leasebook("check", "--json", "--dsn", database_dsn)
    assert answer.code == 1
    found = answer.document
    assert [each["invariant"] for each in found["violations"]] == ["I13", "I13"]
    assert {each["job"] for each in found["violations"]} == {str(ids["due"]), str(ids["retrying"])}
    assert found["violations"][0]["events"][0]["version"] == 1
    assert found["events"] > 8
