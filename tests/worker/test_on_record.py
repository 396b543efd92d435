"""The audit log tells who was there to work: every start, stop and death of real workers."""

from __future__ import annotations

import signal

import pytest

from leasebook.infra.postgres.history import PostgresHistory
from leasebook.projections.replay.facts import Facts, gather
from tests.support.workers import STARTED, eventually
from tests.support.yard import SOON_DEAD, Yard
from tests.worker import app


def on_record(yard: Yard) -> Facts:
    """What a replay reads there."""
    history = PostgresHistory(yard.dsn)
    try:
        return gather(history.audit(history.now()))
    finally:
        history.close()


@pytest.mark.acceptance("E09")
def test_a_start_tells_capacity_code_and_handlers_and_a_stop_ends_it(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEASEBOOK_CODE_VERSION", "v1.4-7-gdeadbee")
    worker = yard.worker("--concurrency", "7", "--queue", "default", name="ada")
    assert worker.stop() == 0
    (found,) = on_record(yard).workers.values()
    assert (found.id, found.name, found.capacity) == (worker.id, "ada", 7)
    assert found.queues == {"default"}
    # (Another module adds the built-in jobs to the book in this process.)
    own = (name for name in app.book.jobs if not name.startswith("leasebook."))
    assert found.names == frozenset(own)
    assert found.code_version == "v1.4-7-gdeadbee"
    assert found.ended is not None
    assert found.ended > found.started
    assert not found.died


@pytest.mark.fault
@pytest.mark.acceptance("E09")
def test_a_death_is_on_record_whoever_noticed_it(yard: Yard) -> None:
    alone, together = yard.worker(), yard.worker()
    alone.kill()
    together.kill(heart=True)
    eventually(lambda: len(yard.audit("worker_died")) == 1, "its own child tells of one")
    third = yard.worker(*SOON_DEAD)
    eventually(lambda: len(yard.audit("worker_died")) == 2, "another worker tells of the other")
    noticed = {dead: detail["noticed_by"] for _, dead, detail in yard.audit("worker_died")}
    assert noticed == {alone.id: alone.id, together.id: third.id}
    workers = on_record(yard).workers
    assert {worker: each.died for worker, each in workers.items()} == {
        alone.id: True,
        together.id: True,
        third.id: False,
    }
    assert workers[third.id].ended is None


@pytest.mark.fault
@pytest.mark.acceptance("E09")
def test_who_was_taken_for_dead_comes_back_as_another(yard: Yard) -> None:
    frozen = yard.worker()
    yard.beating(frozen)
    other = yard.worker(*SOON_DEAD)
    first = frozen.id
    frozen.signal(signal.SIGSTOP, heart=True)
    eventually(lambda: yard.audit("worker_died"), "it is taken for dead")
    assert other.stop() == 0
    frozen.signal(signal.SIGCONT, heart=True)
    eventually(lambda: len(frozen.told(STARTED)) == 2, "it reports for work again")
    workers = on_record(yard).workers
    again = frozen.id
    assert again != first
    assert set(workers) == {first, other.id, again}
    assert (workers[first].died, workers[first].name) == (True, workers[again].name)
    assert workers[again].ended is None
    assert workers[again].capacity == workers[first].capacity
