"""A run in transactions of its handler's: fenced, changed once, completed, whatever the caller."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import psycopg
import pytest

from leasebook import EffectRefused, EffectUnfinished, NoTransaction, Run, StaleLease
from leasebook.domain import Job, change, fold
from leasebook.domain.commands import ExpireLease, StartEffect
from leasebook.domain.values import EffectKind, ExpiryCause
from leasebook.infra.app.errors import NotRunning
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.expiry import sweep
from leasebook.infra.worker.heart import Heart
from leasebook.infra.worker.settings import WorkerSettings
from tests.conformance.making import enqueue, lease, new_spec, tell, worker

from .ground import KINDS, App, Undo, within


@pytest.fixture
def store(database_dsn: str) -> Iterator[PostgresStore]:
    made = PostgresStore(database_dsn)
    yield made
    made.close()


@pytest.fixture
def job(store: PostgresStore) -> Job:
    """A job that a worker runs; its lease ended long ago, but nobody has looked."""
    store.enroll(worker("w1"))
    return lease(store, enqueue(store, new_spec())[0])


def run_of(app: App, job: Job) -> Run:
    return Run(job, None, app.publish.rows)


def now(store: PostgresStore, job: Job) -> Job:
    with store.transaction() as tx:
        found = fold(each.event for each in tx.stream(job.id))
    assert found is not None
    return found


def lost(store: PostgresStore, job: Job) -> Job:
    """Somebody ends its lease."""
    assert job.lease is not None
    return tell(store, job, ExpireLease(job.at, job.lease.token, ExpiryCause.WORKER_LOST))


async def mutate(run: Run, caller: Any, result: object = 1) -> tuple[bool, object]:
    """Whether it was done before, and its receipt."""
    mutation = run.mutation(caller, "credit", to="accounts")
    if "Async" in type(caller).__name__:
        async with mutation as effect:
            before = effect.done
            if not before:
                effect.complete(result)
    else:
        with mutation as effect:
            before = effect.done
            if not before:
                effect.complete(result)
    return before, effect.receipt


async def settled(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_mutation_joins_the_callers_transaction(
    app: App, store: PostgresStore, job: Job, kind: str
) -> None:
    run = run_of(app, job)

    def act(caller: Any) -> Any:
        made = mutate(run, caller, {"n": "ä\\'"})
        return made if "Async" in kind else _finish(made)

    assert await within(kind, app.dsn, act) == (False, {"n": "ä\\'"})
    assert await within(kind, app.dsn, act) == (True, {"n": "ä\\'"})
    [effect] = now(store, job).effects
    assert (effect.kind, effect.destination) == (EffectKind.MUTATION, "accounts")


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that never waits."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    returned: Any = stopped.value.value  # pyright: ignore[reportUnknownMemberType]
    return returned


@pytest.mark.acceptance("Q05")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_rollback_takes_receipt_and_end_with_it(
    app: App, store: PostgresStore, job: Job, kind: str
) -> None:
    run = run_of(app, job)
    complete: Any = run.complete

    def act(caller: Any) -> Any:
        made = mutate(run, caller)
        if "Async" in kind:
            return _both(made, complete(caller))
        _finish(made)
        return complete(caller)

    await within(kind, app.dsn, act, undo=True)
    assert now(store, job) == job
    await within(kind, app.dsn, act)
    assert now(store, job).state == "done"


async def _both(first: Any, second: Any) -> None:
    await first
    await second


@pytest.mark.acceptance("Q08")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_stale_owner_changes_nothing(
    app: App, store: PostgresStore, job: Job, kind: str
) -> None:
    """Another run has the lease, or none; also when it is lost between two transactions."""
    run = run_of(app, job)
    await within(kind, app.dsn, run.fence)
    again = lease(store, lost(store, job), "w2")
    assert again.lease is not None
    for act in (run.fence, run.complete):
        with pytest.raises(StaleLease, match=f"superseded by lease {again.lease.token}") as caught:
            await within(kind, app.dsn, act)
        assert caught.value.current == again.lease.token
    with pytest.raises(StaleLease):
        await within(kind, app.dsn, lambda caller: settled(_stale(run, caller)))
    lost(store, again)
    with pytest.raises(StaleLease, match="no lease is held"):
        await within(kind, app.dsn, run.fence)


def _stale(run: Run, caller: Any) -> Any:
    made = mutate(run, caller)
    return made if "Async" in type(caller).__name__ else _finish(made)


@pytest.mark.acceptance("Q08")
def test_nobody_ends_a_lease_while_a_fence_stands(app: App, store: PostgresStore, job: Job) -> None:
    run = run_of(app, job)
    heart = Heart(store, "w2", WorkerSettings())
    with psycopg.connect(app.dsn) as caller, psycopg.connect(app.dsn) as other:
        run.fence(caller)
        # Two fences of one run do not keep each other waiting, and nobody waits for them.
        run.fence(other)
        assert sweep(store, 10) == ()
        assert heart.bury("w1") == []
        assert heart.is_burying
    [expired] = heart.bury("w1")
    assert expired.after.lease is None
    assert not heart.is_burying
    with psycopg.connect(app.dsn) as caller, pytest.raises(StaleLease):
        run.fence(caller)


@pytest.mark.acceptance("Q08")
def test_a_fence_waits_for_who_is_ending_the_lease_and_then_refuses(
    app: App, store: PostgresStore, job: Job
) -> None:
    run, met = run_of(app, job), list[str]()
    assert job.lease is not None
    ending = ExpireLease(job.at, job.lease.token, ExpiryCause.WORKER_LOST)

    def fence() -> None:
        try:
            with psycopg.connect(app.dsn, application_name="fencing") as caller:
                run.fence(caller)
        except StaleLease as error:
            met.append(error.code)

    thread = threading.Thread(target=fence)
    with store.transaction() as tx:
        tx.append([change(job, ending)])
        thread.start()
        with psycopg.connect(app.dsn, autocommit=True) as watcher:
            waiting = (
                "select from pg_stat_activity where application_name = 'fencing'"
                " and datname = current_database() and wait_event_type = 'Lock'"
            )
            while watcher.execute(waiting).fetchone() is None:
                pass
    thread.join()
    assert met == ["stale_lease"]


def test_what_fails_in_the_block_of_a_mutation_is_the_transactions_to_undo(
    app: App, store: PostgresStore, job: Job
) -> None:
    run = run_of(app, job)

    def change_mind(caller: psycopg.Connection[Any]) -> None:
        with run.mutation(caller, "credit", to="accounts") as effect:
            effect.complete(1)
            raise Undo

    def say_nothing(caller: psycopg.Connection[Any]) -> None:
        with run.mutation(caller, "credit", to="accounts"):
            pass

    with psycopg.connect(app.dsn) as caller:
        with pytest.raises(Undo):
            change_mind(caller)
        with pytest.raises(EffectUnfinished, match=r"without complete\(\) or release\(\)"):
            say_nothing(caller)
        with run.mutation(caller, "credit", to="accounts") as effect:
            effect.complete(2)
            with pytest.raises(EffectRefused, match="Roll back instead"):
                effect.release("changed my mind")
    assert [each.receipt for each in now(store, job).effects] == ["2"]


def test_a_job_is_not_completed_while_an_effect_is_in_progress(
    app: App, store: PostgresStore, job: Job
) -> None:
    assert job.lease is not None
    tell(store, job, StartEffect(job.at, job.lease.token, "post", "chat"))
    run = run_of(app, job)
    with psycopg.connect(app.dsn) as caller:
        with pytest.raises(EffectRefused, match="it is in progress"):
            run.complete(caller)
        mutation = run.mutation(caller, "post", to="accounts")
        with pytest.raises(EffectRefused, match="it is a call to 'chat'"), mutation:
            pass
    assert now(store, job).state == "leased"


async def test_what_cannot_be_done_says_so(app: App, job: Job) -> None:
    run, bare = run_of(app, job), Run(job)
    with psycopg.connect(app.dsn, autocommit=True) as automatic:
        with pytest.raises(NoTransaction):
            run.fence(automatic)
        with pytest.raises(NotRunning, match="not run by a worker"):
            bare.fence(automatic)
        with pytest.raises(NotRunning):
            async with bare.effect("post", to="chat"):
                pass
    async with await psycopg.AsyncConnection.connect(app.dsn) as waiting:
        mutation = run.mutation(waiting, "credit", to="accounts")
        with pytest.raises(EffectRefused, match="Write `async with`"), mutation:
            pass
