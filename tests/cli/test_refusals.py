"""Every foreseeable mistake: one line that helps, the right exit code, and never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Leasebook

LOOKING = [["stats"], ["list"], ["history", "01900000-0000-7000-8000-000000000001"], ["check"]]
ALL = [*LOOKING, ["migrate"], ["check-schema"], ["enqueue", "shop:book", "send_mail", '{"to":"a"}']]
SECRET = "s3cret"


def refused(answer: Answer, code: int, *words: str) -> None:
    """It ended with ``code``, said ``words``, and printed no traceback and no password."""
    assert answer.code == code, answer
    for word in words:
        assert word in answer.err, answer.err
    assert "Traceback" not in answer.err + answer.out
    assert SECRET not in answer.err + answer.out
    assert answer.out == ""


def refused_as_json(answer: Answer, code: int, name: str, *words: str) -> None:
    """The same with ``--json``: one document on standard output."""
    assert answer.document["error"]["code"] == name
    for word in words:
        assert word in answer.document["error"]["message"]
    refused(Answer(answer.code, "", answer.err + answer.out), code)


@pytest.mark.parametrize("command", ALL, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("dsn", "code"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:1/x", 3),
        (f"postgresql+psycopg://me:{SECRET}@127.0.0.1/x", 2),
        (f"postgresql://me:{SECRET}@word@127.0.0.1/x", 2),
        (f"host=127.0.0.1 password={SECRET} nonsense=1", 2),
        ("", 2),
    ],
    ids=["down", "sqlalchemy", "unescaped", "option", "empty"],
)
def test_a_wrong_dsn(leasebook: Leasebook, command: list[str], dsn: str, code: int) -> None:
    refused(leasebook(*command, "--dsn", dsn), code)
    error = leasebook(*command, "--dsn", dsn, "--json")
    assert error.code == code
    assert SECRET not in error.out + error.err
    assert set(error.document) == {"error"}


@pytest.mark.parametrize("command", [*LOOKING, ALL[-1]], ids=lambda words: words[0])
def test_a_schema_that_was_not_migrated(
    leasebook: Leasebook, empty_database_dsn: str, command: list[str]
) -> None:
    words = ('table "jobs-x"."job_events" is missing', "Run: leasebook migrate --schema jobs-x")
    env = {"LEASEBOOK_SCHEMA": "jobs-x"}
    refused(leasebook(*command, "--dsn", empty_database_dsn, env=env), 1, *words)
    answer = leasebook(*command, "--json", "--dsn", empty_database_dsn, env=env)
    refused_as_json(answer, 1, "schema_incomplete", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["history", "abc"], "'abc' is not a valid UUID"),
        (["history"], "Missing argument 'JOB'"),
        (["list", "--state", "grooped"], "'grouped', 'leased', 'retry-wait', 'failed'"),
        (["list", "--limit", "0"], "0 is not in the range"),
        (["stats", "--schema", "pg_x"], "PostgreSQL keeps names with pg_ to itself"),
        (["stats", "--schema", ""], "an empty name"),
        (["migrate", "--schema", "a%b"], "percent sign"),
        (["migrate", "--sql", "--schema", "pg_x"], "PostgreSQL keeps names"),
        (["nosuch"], "No such command 'nosuch'"),
        (["stats", "--nosuch"], "No such option"),
        (["enqueue", "shop", "send_mail"], "write it as module:attribute"),
        (["enqueue", "nosuch:book", "x"], "there is no module 'nosuch'"),
        (["enqueue", "shop.nosuch:book", "x"], "there is no module 'shop.nosuch'"),
        (["enqueue", "shop:bok", "x"], "shop:bok is nothing, not a Book: perhaps 'book' was meant"),
        (["enqueue", "shop:number", "x"], "shop:number is a int, not a Book"),
        (["enqueue", "shop:book", "send_mial"], "perhaps 'send_mail' was meant"),
        (["enqueue", "shop:book", "send_mail", "{"], "a text that is not JSON"),
        (["enqueue", "shop:book", "send_mail", "[" * 100_000], "a text that is not JSON"),
        (["enqueue", "shop:book", "send_mail", "1" * 5_000], "a text that is not JSON"),
        (["enqueue", "shop:book", "send_mail", "[1]"], "args: a list was refused"),
        (["enqueue", "shop:book", "send_mail", "{}"], "args.to"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a", "copis": 2}'], "Perhaps 'copies'"),
        (["enqueue", "shop:book", "send_mail", '{"to": 1}'], "args.to: an int was refused"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a\\u0000"}'], "NUL"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a", "copies": NaN}'], "args.copies"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a"}', "--priority", "12"], "0 (last) to 9"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a"}', "--delay", "-1"], "delay"),
        (["enqueue", "shop:book", "send_mail", '{"to": "a"}', "--group-key", "x"], "has no group"),
        (["enqueue", "shop:book", "sync_page", '{"path": "a"}'], "group_key"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(map(str, value))[:40],
)
def test_refused_input(
    leasebook: Leasebook, database_dsn: str, words: list[str], said: str
) -> None:
    env = {"LEASEBOOK_DSN": database_dsn}
    refused(leasebook(*words, env=env), 2, said)
    answer = leasebook(*words, "--json", env=env)
    assert answer.code == 2
    assert said in json.loads(answer.out)["error"]["message"]
    assert leasebook("list", "--json", env=env).document == [], "nothing was written"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nosuch_library", "ModuleNotFoundError: No module named 'nosuch_library'"),
        ("1 / 0", "ZeroDivisionError: division by zero (broken.py:1 in <module>)"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit('no settings')", "SystemExit: no settings"),
        (f"raise ValueError('postgresql://me:{SECRET}@host/x')", "postgresql://me:***@host/x"),
        ("from leasebook import Book\nb = Book()\n@b.job\ndef f(x): ...", "HandlerRefused"),
    ],
)
@pytest.mark.parametrize("command", ["enqueue", "worker"])
def test_a_module_that_cannot_be_imported(
    leasebook: Leasebook, folder: Path, command: str, code: str, said: str
) -> None:
    (folder / "broken.py").write_text(code, "utf-8")
    words = ["x"] if command == "enqueue" else []
    refused(leasebook(command, "broken:book", *words), 2, "'broken' cannot be imported", said)


def test_a_server_that_cannot_be_started(
    leasebook: Leasebook, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "taken").write_text("a file where a folder should be", "utf-8")
    monkeypatch.setenv("LEASEBOOK_DATA_DIR", str(folder / "taken" / "x"))
    refused(leasebook("stats"), 3, "leasebook: ")


def test_half_a_dsn_in_the_environment(leasebook: Leasebook) -> None:
    refused(leasebook("stats", env={"LEASEBOOK_HOST": "db"}), 2, "LEASEBOOK_DATABASE")


@pytest.mark.parametrize("form", [["--format", "json"], ["--format=ndjson"]])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "wait", "--from", "yesterday"], "is no moment"),
        (["replay", "wait", "--nosuch"], "No such option"),
        (["replay", "job", "abc"], "is not a valid UUID"),
        (["simulate", "--nosuch"], "No such option"),
    ],
)
def test_what_is_asked_for_as_json_is_refused_as_json(
    leasebook: Leasebook, words: list[str], said: str, form: list[str]
) -> None:
    refused_as_json(leasebook(*words, *form), 2, "usage", said)


def test_a_setting_is_refused_as_json(leasebook: Leasebook) -> None:
    answer = leasebook("simulate", "--set", "nonsense", "--format", "json")
    refused_as_json(answer, 2, "invalid_value", "NAME.group.window=")
