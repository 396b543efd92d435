"""A run with an effect, and runs that change the database themselves, cut at every statement."""

from __future__ import annotations

from concurrent.futures import Future
from uuid import UUID

import psycopg
from attrs import frozen

from leasebook.domain import Job, Outcome, change, fold
from leasebook.domain.commands import Complete, CompleteEffect, StartEffect, TakeLease
from leasebook.domain.events import Completed
from leasebook.domain.values import EffectKind
from leasebook.infra.app.writing import UNSTAMPED, EffectCommand
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.postgres.rows_of_runs import PostgresRows
from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.store import PostgresStore
from leasebook.infra.worker.answers import Broke, Entry, Report, Succeeded, Write
from leasebook.infra.worker.settle import Settled
from leasebook.infra.worker.tick import Ask, Ticker
from tests.conformance import making

from .scene import Scene, ticker
from .working import TRIES_MAX

KEY, DESTINATION, CALL = "post", "chat", EffectKind.CALL
OUTSIDE = "create table if not exists outside (job_id uuid)"


@frozen
class Running:
    """A job that the client's worker runs, and where the outside is."""

    actor: str
    job: Job
    outside: str
    number: int

    @property
    def token(self) -> int:
        assert self.job.lease is not None
        return self.job.lease.token


def running(scene: Scene, number: int) -> Running:
    """A job that was leased just now."""
    actor = f"actor {number}"
    scene.store.enroll(making.worker(actor))
    [job] = making.enqueue(scene.store, making.new_spec(number + 1))
    with scene.store.transaction() as tx:
        leased = change(job, TakeLease(tx.at, actor))
        assert not tx.append([leased])
    return Running(actor, leased.after, scene.dsn, number)


def settled(one: Ticker, job: Job, entry: Entry) -> Settled:
    """Tick until the answer is heard."""
    for _ in range(TRIES_MAX):
        try:
            ended = isinstance(entry, Report)
            return one.tick(Ask([entry], () if ended else (job,), 0)).settled
        except StoreUnavailable:
            continue
    raise AssertionError(f"no answer in {TRIES_MAX} tries")


def written(one: Ticker, job: Job, command: EffectCommand) -> Job:
    """The job once the command is committed."""
    [(_, answer)] = settled(one, job, Write(job, command, Future())).answers
    assert isinstance(answer, Job), f"it was refused: {answer}"
    return answer


@frozen
class Affecting:
    """An effect is begun, made, completed, and its job done: four steps, three commits."""

    name: str = "run with an effect"

    def prepare(self, scene: Scene, number: int) -> Running:
        """A job in the hands of the client's worker."""
        with psycopg.connect(scene.dsn, autocommit=True) as outside:
            outside.execute(OUTSIDE)
        return running(scene, number)

    def act(self, dsn: str, given: Running) -> bool:
        """What the handler and its worker do."""
        one, token, job = ticker(PostgresStore(dsn), given.actor), given.token, given.job
        job = written(one, job, StartEffect(UNSTAMPED, token, KEY, DESTINATION))
        with psycopg.connect(given.outside, autocommit=True) as outside:
            outside.execute("insert into outside values (%s)", (job.id,))
        receipt = CompleteEffect(UNSTAMPED, token, KEY, DESTINATION, CALL, '{"ts":1}')
        job = written(one, job, receipt)
        told = settled(one, job, Report(job, Succeeded()))
        assert len(told.changes) == 1
        return True

    def verify(self, scene: Scene, given: Running, told: bool | None) -> None:
        """A call was made once at most, and never unless its begin is on record."""
        runs = [job.id for job in scene.finish(dead=[given.actor])]
        stream = scene.streams()[given.job.id]
        job = fold(each.event for each in stream)
        assert job is not None
        calls, kinds = _calls(scene, job.id), [each.event.kind for each in stream]
        begun = kinds.count("effect_started")
        assert calls <= begun <= 1, f"{calls} calls, begun {begun} times"
        if "effect_completed" in kinds:
            assert calls == 1
            assert (job.outcome, job.effects[0].receipt) == (Outcome.DONE, '{"ts":1}')
        elif begun:
            assert (job.outcome, job.held) == (Outcome.UNCERTAIN, True), f"it is {job.outcome}"
            assert job.id not in runs, "it ran again"
        else:
            assert job.outcome is Outcome.DONE
        assert not told or job.id not in runs, "what was told to be done ran again"


@frozen
class Deciding:
    """A job is done together with an order, in a transaction of the handler's."""

    name: str = "run that completes itself"

    def prepare(self, scene: Scene, number: int) -> Running:
        """A job in the hands of the client's worker."""
        return running(scene, number)

    def act(self, dsn: str, given: Running) -> bool:
        """What the handler does, and how its worker tells of its end."""
        rows = PostgresRows(Schema("leasebook"))
        answer: Succeeded | Broke = Succeeded('"not kept"')
        try:
            with psycopg.connect(dsn) as caller:
                caller.execute("insert into orders values (%s)", (given.number,))
                rows.write(caller, given.job, Complete(UNSTAMPED, given.token, '"by itself"'))
        except psycopg.OperationalError:
            answer = Broke("no answer", 0.0)
        one = ticker(PostgresStore(dsn), given.actor)
        settled(one, given.job, Report(given.job, answer))
        return True

    def verify(self, scene: Scene, given: Running, told: bool | None) -> None:
        """The order is there if and only if the handler's own completion is."""
        scene.finish(dead=[given.actor])
        stream = scene.streams()[given.job.id]
        ends = [each.event for each in stream if isinstance(each.event, Completed)]
        assert len(ends) == 1, f"it was done {len(ends)} times"
        with psycopg.connect(scene.dsn) as reader:
            ask = "select count(*) from orders where number = %s"
            [orders] = reader.execute(ask, (given.number,)).fetchone() or [0]
        assert orders == (ends[0].result == '"by itself"'), f"{orders} orders, {ends[0].result}"


def _calls(scene: Scene, job_id: UUID) -> int:
    with psycopg.connect(scene.dsn) as reader:
        ask = "select count(*) from outside where job_id = %s"
        [calls] = reader.execute(ask, (job_id,)).fetchone() or [0]
    return int(calls)


AFFECTING = (Affecting(), Deciding())
