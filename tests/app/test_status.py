"""How a job stands for the public, in every state, for every caller, and after it was pruned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from leasebook import InvalidValue, NoTransaction, Run, Status
from leasebook.domain import Job
from leasebook.domain.commands import Complete
from leasebook.domain.values import Outcome
from leasebook.infra.postgres.store import PostgresStore
from tests.conformance.making import enqueue, lease, new_spec, tell
from tests.support.standing import fill

from .ground import KINDS, App, within

pytestmark = pytest.mark.acceptance("Q16")

WORDS = {
    "due": "queued",
    "delayed": "queued",
    "grouped": "queued",
    "retrying": "queued",
    "running": "processing",
    "done": "succeeded",
    "held": "failed",
}
KEPT = "select status, outcome, owner from leasebook.job_summaries"


@pytest.fixture
def store(database_dsn: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(database_dsn)) as made:
        yield made


def running(store: PostgresStore, number: int = 1, **fields: Any) -> Job:
    """A job that a worker runs; its lease ended long ago, but nobody has looked."""
    return lease(store, enqueue(store, new_spec(number, **fields))[0])


def sql(app: App, statement: str) -> list[Any]:
    with psycopg.connect(app.dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_every_state_has_one_of_four_words_before_and_after_pruning(app: App) -> None:
    ids = fill(app.dsn)
    told = {name: app.book.status(None, ids[name]) for name in WORDS}
    assert told == WORDS
    assert app.book.prune(timedelta(0)).pruned == 1
    assert {name: app.book.status(None, ids[name]) for name in WORDS} == WORDS


def test_past_its_lease_a_job_is_processing(app: App, store: PostgresStore) -> None:
    job = running(store)
    assert app.book.status(None, job.id) is Status.PROCESSING


@pytest.mark.unchecked("the ends of the jobs are written past the rules")
def test_whatever_the_outcome(app: App, store: PostgresStore) -> None:
    """And without a summary, as a worker of an earlier release leaves a job of an owner."""
    outcomes = [*Outcome]
    jobs = [running(store, number=number, owner="ann") for number in range(1, len(outcomes) + 1)]
    expected: dict[UUID, str] = {}
    sql(app, "delete from leasebook.jobs")
    for job, outcome in zip(jobs, outcomes, strict=True):
        succeeded = outcome in (Outcome.DONE, Outcome.SKIPPED)
        kind, word = ("completed", "succeeded") if succeeded else ("failed", "failed")
        data = f'{{"outcome":"{outcome}","held":false,"error":"e","result":null}}'
        sql(
            app,
            "insert into leasebook.job_events (job_id, version, at, kind, lease, data)"
            f" values ('{job.id}', 3, now() - interval '1 s', '{kind}.v1', 2, '{data}')",
        )
        expected[job.id] = word
    assert {job.id: app.book.status(None, job.id) for job in jobs} == expected
    assert sql(app, KEPT) == []
    assert app.book.prune(timedelta(0)).pruned == len(outcomes)
    assert {job.id: app.book.status(None, job.id) for job in jobs} == expected
    assert sorted(sql(app, KEPT)) == sorted(
        (expected[job.id], str(outcome), "ann") for job, outcome in zip(jobs, outcomes, strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_every_caller_sees_its_own_enqueue(app: App, kind: str) -> None:
    add: Any = app.add
    status: Any = app.book.status

    async def later(caller: Any) -> Any:
        receipt = await add.enqueue(caller, 1)
        assert receipt.id is not None
        return receipt.id, await status(caller, receipt.id)

    def at_once(caller: Any) -> Any:
        receipt = add.enqueue(caller, 1)
        assert receipt.id is not None
        return receipt.id, status(caller, receipt.id)

    job_id, found = await within(kind, app.dsn, later if "Async" in kind else at_once)
    assert found is Status.QUEUED
    assert app.book.status(None, job_id) is Status.QUEUED


@pytest.mark.parametrize(
    ("kind", "owner", "undo"),
    [
        *((kind, "ann", False) for kind in KINDS),
        ("psycopg.Connection", "ann", True),
        ("psycopg.Connection", None, False),
    ],
)
async def test_a_job_that_its_handler_completes(
    app: App, store: PostgresStore, kind: str, owner: str | None, undo: bool
) -> None:
    """The summary stands and falls with the handler's own transaction."""
    job = running(store, owner=owner)
    run = Run(job, None, app.publish.rows)
    status: Any = app.book.status

    async def later(caller: Any) -> Any:
        await run.complete(caller)
        return await status(caller, job.id)

    def at_once(caller: Any) -> Any:
        run.complete(caller)
        return status(caller, job.id)

    found = await within(kind, app.dsn, later if "Async" in kind else at_once, undo=undo)
    assert found == (None if undo else "succeeded")
    kept = sql(app, KEPT)
    assert kept == ([("succeeded", "done", "ann")] if owner and not undo else [])


def test_no_statement_more_for_a_job_without_an_owner(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = running(store)
    assert job.lease is not None
    asked: list[str] = []
    link: Any = vars(store)["_link"]
    real = link.ask

    def ask(text: str, given: Any) -> Any:
        asked.append(text)
        return real(text, given)

    monkeypatch.setattr(link, "ask", ask)
    tell(store, job, Complete(job.at, job.lease.token, "null"))
    assert len(asked) == 1
    assert "job_summaries" not in asked[0]


def test_what_is_unknown_or_refused(app: App) -> None:
    assert app.book.status(None, uuid4()) is None
    bad: Any
    for bad in (None, "x", 7, str(UUID(int=1))):
        with pytest.raises(InvalidValue, match="job_id"):
            app.book.status(None, bad)
    with (
        psycopg.connect(app.dsn, autocommit=True) as connection,
        pytest.raises(NoTransaction),
    ):
        app.book.status(connection, uuid4())
