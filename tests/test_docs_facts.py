"""What README, ARCHITECTURE and docs say of names, defaults and commands is what the code has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest
from attrs import fields

from leasebook.domain import Group, Policy, Retry, State
from leasebook.domain import limits as limit
from leasebook.infra.cli import output as ends
from leasebook.infra.cli.commands import COMMANDS
from leasebook.infra.enrolment import NAMES_MAX
from leasebook.infra.postgres.history import EVENTS_MAX, PIECE_ROWS
from leasebook.infra.postgres.pooler import PREPARE_DEFAULT
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.projections.check import INVARIANTS
from leasebook.projections.replay.waiting import Cause
from leasebook.projections.whatif.policy import SETTINGS as SIMULATED
from tests.support.source import PARTS, TOP, modules

OPERATING = (TOP / "docs" / "operating.md").read_text("utf-8")
HANDLERS = (TOP / "docs" / "handlers.md").read_text("utf-8")
REPLAY = (TOP / "docs" / "replay.md").read_text("utf-8")
ARCHITECTURE = (TOP / "ARCHITECTURE.md").read_text("utf-8")
README = (TOP / "README.md").read_text("utf-8")

WORKER, DATABASE, POLICY, RETRY = WorkerSettings(), Settings(), Policy(), Retry()
#: Set by leasebook for its own children.
INTERNAL_VARIABLES: frozenset[str] = frozenset()
#: Every field of the worker's settings and of a connection's, by its line in the table.
WORKER_LINES = {
    "concurrency": "runs at once",
    "queues": "queues",
    "poll": "longest sleep between two looks",
    "heartbeat": "heartbeat",
    "dead_after": "silence after which a worker is dead",
    "death_detection": "death detection",
    "drain": "time to finish at a stop",
    "cancel": "time to clean up after that",
    "settle": "time to record how runs ended",
    "farewell": "time to sign off",
    "begin": "a handler must begin within",
    "overrun": "a run past its time-out is ended by the heartbeat after",
    "outage_error": "an outage is an ERROR after",
    "suspect_seconds": "an interrupted job counts as such for",
    "collect_items": "items collected at once",
    "collect_every": "pause between two collections",
    "sweep_jobs": "leases ended at once",
    "floor_seconds": "all due jobs are looked through every",
}
DATABASE_LINES = {
    "connect_seconds": "making a connection",
    "silence_seconds": "silence after which a connection is lost",
    "lock_seconds": "one wait for a lock",
    "statement_seconds": "one statement",
    "idle_seconds": "one pause inside a transaction",
    "prepare_after": "executions before a statement is prepared",
    "collect_keys": "group keys collected at once",
}
SETTINGS: Mapping[str, object] = {
    **{line: getattr(WORKER, name) for name, line in WORKER_LINES.items()},
    **{line: getattr(DATABASE, name) for name, line in DATABASE_LINES.items()},
    "queues": "of the book",
    "death detection": "on",
    "preparing statements": PREPARE_DEFAULT,
    "lease": POLICY.lease,
    "time-out of a run": POLICY.timeout,
    "an interrupted run": str(POLICY.on_expired),
    "retries": RETRY.retries,
    "delay between them": RETRY.delay,
    "cap of a growing delay": RETRY.cap,
    "items of a group": fields(Group).max_size.default,
    "priority": limit.PRIORITY_DEFAULT,
    "arguments": limit.ARGS_BYTES_MAX,
    "result": limit.RESULT_BYTES_MAX,
    "text of an error": limit.ERROR_CHARS_MAX,
    "name of a job or queue": limit.NAME_BYTES_MAX,
    "group key, owner, subject, label": limit.KEY_BYTES_MAX,
}


def rows(text: str, heading: str) -> Iterator[list[str]]:
    """The cells of the table under a heading of the table, given as its first column."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            break
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_settings() -> None:
    told = {
        name: float(default.split()[0].replace(",", "")) if default[0].isdigit() else default
        for name, _, default in rows(OPERATING, "setting")
    }
    assert told == SETTINGS
    assert WORKER.queues == ()
    assert WORKER.death_detection is True
    assert list(WORKER_LINES) == [each.name for each in fields(WorkerSettings)]
    assert list(DATABASE_LINES) == [each.name for each in fields(Settings)]
    assert limit.LABEL_BYTES_MAX == limit.KEY_BYTES_MAX
    assert RETRY.retries == POLICY.retries


def test_every_variable_that_is_read_is_told() -> None:
    source = "".join(path.read_text("utf-8") for path in modules("infra"))
    read = {name for name in re.findall(r"\bLEASEBOOK_[A-Z_]+\b", source) if name[-1] != "_"}
    told = [cells[0].strip("`") for cells in rows(OPERATING, "variable")]
    assert sorted(read - INTERNAL_VARIABLES) == sorted(told)


def test_options_of_the_settings_exist() -> None:
    from leasebook.infra.cli.worker import worker

    options = {name for parameter in worker.params for name in parameter.opts}
    named = set(re.findall(r"`(?:worker )?(--[a-z-]+)`", OPERATING))
    others = {"--json", "--dsn", "--schema", "--sql", "--name", "--state", "--help"}
    others |= {"--undo", "--old", "--since", "--batch"}
    assert named - others <= options


def test_commands() -> None:
    told = [cells[0].split()[1].strip("`") for cells in rows(OPERATING, "command")]
    assert told == list(COMMANDS)


def test_questions_of_a_replay() -> None:
    from leasebook.infra.cli.incident import incident
    from leasebook.infra.cli.replay import replay
    from leasebook.infra.cli.simulate import simulate

    told = [cells[0].split()[1].strip("`") for cells in rows(REPLAY, "question")]
    assert told == list(replay.commands)
    causes = [cells[0].strip("`") for cells in rows(REPLAY, "cause")]
    assert causes == [cause.value for cause in Cause]
    asked = [*replay.commands.values(), incident, simulate]
    options = {name for each in asked for option in each.params for name in option.opts}
    assert set(re.findall(r"`(?:replay \w+ )?(--[a-z-]+)", REPLAY)) <= options
    assert f"`--max-events` events ({EVENTS_MAX:,})" in " ".join(REPLAY.split())
    assert f"{PIECE_ROWS:,} events at a time" in REPLAY


def test_settings_of_a_simulation() -> None:
    assert {name.strip("`"): what for name, what in rows(REPLAY, "setting")} == SIMULATED
    assert f"more than {NAMES_MAX} handlers" in " ".join(REPLAY.split())


def test_exit_codes() -> None:
    told = [int(cells[0]) for cells in rows(OPERATING, "exit code")]
    assert told == [0, ends.FINDING, ends.REFUSED, ends.UNAVAILABLE, ends.INTERRUPTED]


def test_log_lines() -> None:
    source = "".join(path.read_text("utf-8") for path in modules("infra"))
    # These are logged under a name.
    named = {
        "[IMPORTANT] Failed on job": "IMPORTANT",
        "job aborted": "ABORTED",
        "store unavailable": "event",
    }
    for level, line, _ in rows(OPERATING, "level"):
        text = line.strip("`")
        assert f'"{text}' in source, f"nothing logs {text!r}"
        start = named.get(text, f'"{text}')
        call = rf"log\.{level.lower()}\(\s*{re.escape(start)}"
        assert re.search(call, source), f"{text!r} is not logged as {level}"


def test_numbers_in_the_handlers_page() -> None:
    text = " ".join(HANDLERS.split())
    assert f"{limit.ARGS_BYTES_MAX // 2**20} MiB" in text
    assert f"more than {limit.RESULT_BYTES_MAX // 2**20} MiB" in text
    assert f"{limit.ERROR_CHARS_MAX:,} characters" in text
    assert f"than `max_size` ({fields(Group).max_size.default})" in text
    assert f"`Retry({RETRY.retries}, delay={RETRY.delay:g})`, the default" in text
    assert f"default {limit.PRIORITY_DEFAULT})" in text


def test_the_code_map_lists_every_package() -> None:
    packages = {
        f"{init.parent.relative_to(TOP).as_posix()}/"
        for part in PARTS
        for init in (TOP / part).rglob("__init__.py")
    }
    places = [cells[0].strip("`") for cells in rows(ARCHITECTURE, "place")]
    assert places == sorted(places), "in the order of `tree`"
    assert packages <= set(places)
    for place in places:
        assert (TOP / place).is_dir(), place


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "README.md", *["docs/" + name for name in (
    "handlers.md", "operating.md", "deploying.md", "embedding.md", "replay.md")]])  # fmt: skip
def test_paths_and_links_exist(page: str) -> None:
    text = (TOP / page).read_text("utf-8")
    folder = (TOP / page).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (folder / target).exists(), target
    for target in re.findall(r"`((?:domain|infra|projections|tests|docs|examples)/[\w./]*)`", text):
        assert (TOP / target).exists(), target


def test_methods_in_the_architecture_exist() -> None:
    source = "".join(path.read_text("utf-8") for path in modules(*PARTS))
    named = re.findall(r"`([A-Z]\w+)\.(\w+)`", ARCHITECTURE)
    assert named
    for owner, method in named:
        assert f"class {owner}" in source, owner
        assert f"def {method}(" in source, f"{owner}.{method}"


def test_every_invariant_has_a_planted_violation() -> None:
    planted = (TOP / "tests" / "projections" / "test_check.py").read_text("utf-8")
    assert [name for name in INVARIANTS if f'"{name}"' not in planted] == []


def test_the_two_commands_and_the_contents() -> None:
    (block,) = re.findall(r"## Two commands\n\n```bash\n(.*?)```", README, re.DOTALL)
    assert [line.split("#")[0].strip() for line in block.splitlines()] == ["make demo", "make test"]
    makefile = (TOP / "Makefile").read_text("utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)
    headings = {
        heading.lower().replace(" ", "-") for heading in re.findall(r"^## (.+)$", README, re.M)
    }
    for anchor in re.findall(r"\]\(#([\w-]+)\)", README):
        assert anchor in headings


def test_states_that_the_list_command_takes() -> None:
    from leasebook.infra.cli.look import STATES

    assert set(STATES) == {state.value for state in State} - {"done"}
