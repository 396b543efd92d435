"""`leasebook prune` and `status`, and what other commands say of a job whose history is gone."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from tests.support.standing import fill

from .conftest import Answer, Leasebook

pytestmark = pytest.mark.acceptance("Q16")


Ask = Callable[..., Answer]


@pytest.fixture
def ask(leasebook: Leasebook, database_dsn: str) -> Ask:
    """The command on the test's database."""
    return lambda *words: leasebook(*map(str, words), env={"LEASEBOOK_DSN": database_dsn})


@pytest.fixture
def ids(database_dsn: str) -> dict[str, UUID]:
    return fill(database_dsn)


def test_status(ask: Ask, ids: dict[str, UUID]) -> None:
    for name, word in (("due", "queued"), ("running", "processing"), ("held", "failed")):
        answer = ask("status", ids[name])
        assert (answer.code, answer.out) == (0, f"{word}\n")
    document = ask("status", ids["done"], "--json").document
    assert document == {"job": str(ids["done"]), "status": "succeeded"}
    unknown = ask("status", uuid4())
    assert (unknown.code, unknown.out) == (1, "")
    assert "is in this log" in unknown.err


def test_a_pruned_job_is_told_by_how_it_ended(ask: Ask, ids: dict[str, UUID]) -> None:
    job = ids["done"]
    assert ask("prune", "--older-than", "30d").out == "0 of 8 jobs pruned\n"
    assert ask("prune", "--older-than", "0s", "--batch", 3).out == "1 of 8 jobs pruned\n"
    assert ask("status", job).out == "succeeded\n"
    history = ask("history", job)
    assert history.code == 0
    assert history.out.startswith(
        f"job {job}: work\nits history was pruned: it succeeded (done) at"
    )
    document = ask("history", job, "--json").document
    assert (document["state"], document["events"]) == (None, [])
    assert document["pruned"]["status"] == "succeeded"
    replayed = ask("replay", "job", job)
    assert (replayed.code, replayed.out) == (1, history.out)
    records = ask("replay", "job", job, "--format", "json").document["records"]
    assert [(each["record"], each["outcome"]) for each in records] == [("pruned", "done")]
    for command in (
        ["check"],
        ["projection", "verify"],
        ["projection", "repair"],
        ["replay", "at"],
    ):
        assert ask(*command).code == 0, command
    assert ask("replay", "check").code == 0
    assert ask("history", ids["due"], "--json").document["pruned"] is None


def test_what_is_refused(ask: Ask) -> None:
    for given, told in (
        (["--older-than", "soon"], "is no age: write 30d"),
        (["--older-than", "-1d"], "is no age: write 30d"),
        (["--older-than", f"{10**12}d"], "is no age: write 30d"),
        (["--older-than", "1d", "--batch", "0"], "batch"),
        ([], "--older-than"),
    ):
        answer = ask("prune", *given)
        assert answer.code == 2
        assert told in answer.err


def test_as_json(ask: Ask, ids: dict[str, UUID]) -> None:
    document = ask("prune", "--older-than", "0s", "--json").document
    assert document == {"looked": 8, "pruned": 1, "kept": 0, "reader": None}
