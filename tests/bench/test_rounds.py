"""Queues take turns, and one that cannot be had or fails is left out by name, with the reason."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from bench import environments, rounds
from bench.environments import NotInstalled, environment_of
from bench.peers import Spec
from bench.result import Result

BENCH: Any = None


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for environments in which nothing is installed."""
    monkeypatch.setattr(environments, "FOLDER", tmp_path)
    return tmp_path


def measure(monkeypatch: pytest.MonkeyPatch, *broken: str) -> None:
    """A measure whose queues answer at once, but for those that are broken."""

    def quick(bench: object, spec: Spec, number: int) -> Result:
        if spec.name in broken:
            raise RuntimeError("the worker wrote\nits tables are gone")
        return Result("hot", spec.text, number, 1, 0.0, {"items_per_second": 1.0})

    monkeypatch.setattr(rounds, "MEASURES", {"hot": quick})


def specs(*names: str) -> list[Spec]:
    return [Spec.parse(name) for name in names]


def test_queues_take_turns_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch)
    lines: list[str] = []
    found = rounds.measured(BENCH, "hot", specs("bare", "leasebook"), 2, lines.append)
    assert [(each.queue, each.round) for each in found.results] == [
        ("bare", 0),
        ("leasebook", 0),
        ("bare", 1),
        ("leasebook", 1),
    ]
    assert len(lines) == 4
    assert not found.absent


def test_one_that_fails_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    measure(monkeypatch, "bare")
    lines: list[str] = []
    found = rounds.measured(BENCH, "hot", specs("bare", "leasebook", "pgmq"), 2, lines.append)
    assert {each.queue for each in found.results} == {"leasebook"}
    assert found.absent == {
        "bare": "failed: its tables are gone",
        "pgmq": "it has no groups",
    }
    assert any("its tables are gone" in line for line in lines)


def test_one_that_cannot_be_installed_says_what_to_do(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(rounds, "MEASURES", {})
    found = rounds.measured(BENCH, "drain", specs("graphile"), 1, lambda line: None)
    assert found.absent == {
        "graphile": "graphile needs npm, and there is none on PATH. Install Node.js."
    }


def test_a_package_that_is_not_to_be_had_says_what_to_do(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = nowhere / "npm"
    npm.write_text("#!/bin/sh\necho working\necho no such package >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(nowhere), prepend=":")
    told = r"graphile could not be installed: no such package\. .*--queues"
    with pytest.raises(NotInstalled, match=told):
        environment_of(Spec.parse("graphile"))
    assert not (nowhere / "peers" / "graphile" / "made").exists()


def test_a_newer_python_is_asked_for_by_its_version(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nowhere / "pq.txt").write_text("# python>=3.99\nnone\n")
    monkeypatch.setattr(environments, "REQUIREMENTS", nowhere)
    monkeypatch.setattr(environments, "COMMON", nowhere / "pq.txt")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotInstalled, match=r"pq needs Python 3\.99 or newer.*Install it, or uv"):
        environment_of(Spec.parse("pq"))


def test_no_variable_of_ours_reaches_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEBOOK_DSN", "postgresql://elsewhere")
    environment = environment_of(Spec.parse("leasebook"))
    assert environment.python == sys.executable
    assert "LEASEBOOK_DSN" not in environment.variables


@pytest.mark.parametrize("text", ["celery", "leasebook@/there/is/none", "pgqueuer:many"])
def test_what_is_no_queue_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"celery|none|many"):
        Spec.parse(text)
