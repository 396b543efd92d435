"""The commands, and the guard that lets no more work into the old table."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from leasebook.infra.app.importing import refuse_what_is_left
from leasebook.infra.cli.commands import main

from .ground import OLD_MAP, Move

APP = """
from leasebook import Book, Run

book = Book()


@book.job(queue="mail")
async def send_mail(run: Run, to: str, copies: int = 1) -> None: ...


@book.job
async def tidy(run: Run) -> None: ...
"""
COMMAND = ("shop_to_move:book", "--from", "old_queue")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(move: Move, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("LEASEBOOK_DSN", move.dsn)
    (tmp_path / "shop_to_move.py").write_text(APP, "utf-8")
    (tmp_path / "map.toml").write_text(OLD_MAP, "utf-8")

    def run(word: str, *words: str, mapped: bool = True) -> tuple[int, str, str]:
        options = ("--map", "map.toml") if mapped else ()
        result = CliRunner().invoke(main, [word, *COMMAND, *options, *words])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    yield run
    sys.modules.pop("shop_to_move", None)


def add(move: Move, task: str = "tidy", state: str = "new") -> None:
    move.say("insert into old_queue (task, payload, state) values (%s, '{}', %s)", [task, state])


@pytest.mark.acceptance("A06")
def test_the_command_tells_what_became_of_every_row(move: Move, command: Command) -> None:
    for task, state in (("tidy", "new"), ("tidi", "new"), ("tidy", "running"), ("x", "done")):
        add(move, task, state)
    code, out, _ = command("import-table")
    assert code == 1
    assert "1 row would be imported" in out
    assert 'set aside ["2"] (unknown_name)' in out
    assert "dry run" in out
    assert move.jobs() == []
    code, out, _ = command("import-table", "--execute", "--json")
    document: Any = json.loads(out)
    assert code == 1
    assert (document["imported"], document["finished"], document["set_aside"]) == (1, 1, 2)
    assert [each["reason"] for each in document["set_aside_rows"]] == [
        "unknown_name",
        "half_finished",
    ]
    move.say("delete from old_queue where id in (2, 3)")
    code, out, _ = command("import-table", "--execute")
    assert code == 0
    assert "0 rows imported" in out


@pytest.mark.acceptance("A06")
def test_the_command_without_a_map_or_with_a_bad_one(move: Move, command: Command) -> None:
    code, _, err = command("import-table", mapped=False)
    assert code == 2
    assert "--map" in err
    Path("map.toml").write_text("nam = 'x'")
    code, _, err = command("import-table")
    assert code == 2
    assert "Perhaps 'name' was meant" in err


@pytest.mark.acceptance("Q28")
def test_no_guard_while_rows_can_be_imported_or_are_busy(move: Move, command: Command) -> None:
    add(move)
    code, _, err = command("cut-over")
    assert code == 2
    assert "1 rows wait in it" in err
    with psycopg.connect(move.dsn) as worker:
        worker.execute("select 1 from old_queue for update")
        code, _, err = command("cut-over")
        assert code == 2
        assert "held by other sessions" in err
    command("import-table", "--execute")
    code, out, _ = command("cut-over")
    assert (code, out) == (0, "public.old_queue takes no more work\n")


def write_late(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn) as late:
        if not statement.startswith("copy"):
            late.execute(statement.encode())
            return
        with late.cursor().copy(statement.encode()) as copy:
            copy.write(b"tidy\n")


@pytest.mark.acceptance("Q28")
def test_late_writers_fail_loudly_until_the_guard_is_taken_away(
    move: Move, command: Command
) -> None:
    add(move)
    command("import-table", "--execute")
    assert command("cut-over")[0] == 0
    before = move.say("select * from old_queue")
    for statement in (
        "insert into old_queue (task) values ('tidy')",
        "update old_queue set state = 'new'",
        "set session_replication_role = replica; insert into old_queue (task) values ('tidy')",
        "copy old_queue (task) from stdin",
    ):
        with pytest.raises(psycopg.Error) as refused:
            write_late(move.dsn, statement)
        assert "has moved to leasebook" in str(refused.value), statement
        assert refused.value.sqlstate == "55000"
        assert "cut-over shop_to_move:book --from old_queue --undo" in str(
            refused.value.diag.message_hint
        )
    assert move.say("select * from old_queue") == before
    # Again is no error; looking and importing again still work.
    assert command("cut-over")[1] == "public.old_queue takes no more work, as before\n"
    assert command("import-table", "--execute")[0] == 0
    assert command("cut-over", "--undo", mapped=False)[1] == "public.old_queue takes writes again\n"
    add(move)
    assert [each["source"] for each in move.audit("cut_over")] == ["public.old_queue"]
    assert len(move.audit("cut_over_undone")) == 1


@pytest.mark.acceptance("Q28")
def test_a_writer_that_has_not_committed_keeps_the_guard_away(
    move: Move, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leasebook.infra.postgres.old_table.LOCK_SECONDS", 0.2)
    with psycopg.connect(move.dsn) as writer:
        writer.execute("insert into old_queue (task, payload) values ('tidy', '{}')")
        code, _, err = command("cut-over")
        assert code == 2
        assert f"pid {writer.info.backend_pid}" in err
    code, _, err = command("cut-over")
    assert code == 2
    assert "Run import-table" in err


@pytest.mark.acceptance("Q28")
def test_rows_that_come_between_the_check_and_the_guard(
    move: Move, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = refuse_what_is_left

    def late(report: Any) -> None:
        real(report)
        add(move)

    monkeypatch.setattr("leasebook.infra.cli.import_table.refuse_what_is_left", late)
    code, _, err = command("cut-over")
    assert code == 2
    assert "1 rows have come into it meanwhile" in err
    add(move)
    assert move.audit("cut_over") == []


@pytest.mark.acceptance("Q28")
def test_what_is_set_aside_does_not_keep_the_guard_away(move: Move, command: Command) -> None:
    add(move, "unknown")
    assert command("cut-over")[0] == 0


@pytest.mark.acceptance("Q28")
def test_the_guard_of_a_partitioned_table_sees_its_partitions(move: Move, command: Command) -> None:
    move.say("""
        drop table old_queue;
        create table old_queue (id bigint primary key, task text) partition by range (id);
        create table old_queue_1 partition of old_queue for values from (1) to (100);
    """)
    Path("map.toml").write_text('name = "task"')
    assert command("cut-over")[0] == 0
    for table in ("old_queue", "old_queue_1"):
        with pytest.raises(psycopg.Error, match="has moved to leasebook"):
            move.say(f"insert into {table} values (1, 'tidy')")
