"""The tick loop when the store fails in parts, and when something fails that should not."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from threading import Thread, current_thread
from typing import Any

import pytest
from attrs import define, evolve, field

from leasebook.domain.job import Job
from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.ports import StoreUnavailable
from leasebook.infra.worker.answers import Report, Succeeded
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.loop import TickLoop
from leasebook.infra.worker.outage import Outage
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.settling import FEW, Settling
from tests.conformance.making import birth, complete, interrupt, lease, new_spec, now, write
from tests.support.workers import DEADLINE_SECONDS, eventually

from .ticking import SETTINGS, W1, due, kinds, ticker

QUICK = WorkerSettings(poll=0.05, heartbeat=0.2, settle=0.5)


@define(eq=False)
class Hands:
    """Stands in for the executor: every run succeeds at once, unless it is to go on."""

    bell: Bell
    finish: bool = True
    started: list[Job] = field(factory=list[Job])
    forgotten: list[Job] = field(factory=list[Job])

    def start(self, jobs: Sequence[Job]) -> None:
        self.started.extend(jobs)
        if self.finish:
            for job in jobs:
                self.bell.put(Report(job, Succeeded()))

    def forget(self, jobs: Sequence[Job]) -> None:
        self.forgotten.extend(jobs)

    def responsive(self, now: float) -> bool:
        return True

    def not_begun(self, now: float) -> Sequence[Report]:
        return ()


class Turning:
    """A loop that turns in a thread until the block ends."""

    def __init__(self, database: MemoryDatabase, settings: WorkerSettings = QUICK) -> None:
        self.store = MemoryStore.on(database)
        self.bell = Bell()
        self.hands = Hands(self.bell)
        self.idle = 0
        self.buried = 0
        one = ticker(self.store)
        one.settings = settings
        hands: Any = self.hands
        settling = Settling(evolve(one, store=MemoryStore.on(database)), self.bell)
        self.settler = Thread(target=settling.run, daemon=True)
        self.settler.start()
        self.loop = TickLoop(
            self.store, one, settling, hands, self.bell, settings, self._bury, self._count
        )
        self._thread = Thread(target=self.loop.run, daemon=True)

    def __enter__(self) -> Turning:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.loop.stop()
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()

    def _bury(self) -> str:
        self.buried += 1
        name = f"w1, life {self.buried + 1}"
        ticker(self.store, name)
        return name

    def _count(self) -> None:
        self.idle += 1


def failing(step: str, error: Exception, until: Callable[[], bool]) -> Callable[[str], None]:
    """A seam at which every transaction fails until a condition holds."""

    def seam(name: str) -> None:
        if name == step and not until():
            raise error

    return seam


def away_from(step: str) -> Callable[[str], None]:
    """A seam at which the store goes away in the middle of a transaction, for good."""
    away = False

    def seam(name: str) -> None:
        nonlocal away
        away = away or name == step
        if away:
            raise StoreUnavailable("gone")

    return seam


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, without the facts."""
    return [getattr(record, "leasebook", {"event": ""})["event"] for record in caplog.records]


def test_a_store_that_can_be_read_and_not_written_is_one_outage_and_one_line(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """A standby, or a missing grant: every look succeeds and every tick fails."""
    caplog.set_level(logging.INFO)
    tries = 0

    def enough() -> bool:
        nonlocal tries
        tries += 1
        return tries > 3

    with Turning(database) as turning:
        jobs = due(turning.store, 1)
        database.on_step(failing("append", StoreUnavailable("read only"), enough))
        eventually(lambda: kinds(turning.store, jobs[0])[-1] == "completed", "it is done at last")
        eventually(lambda: "store available again" in events(caplog), "that is said")
    assert events(caplog).count("store unavailable") == 1
    assert events(caplog).count("store available again") == 1


def test_an_outage_of_one_transaction_is_over_when_the_other_does_its_work(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """An end that could not be recorded by itself goes with the next tick that leases."""
    caplog.set_level(logging.INFO)
    well = False
    with Turning(database) as turning:
        turning.hands.finish = False
        [job] = due(turning.store, 1)
        turning.bell.ring()
        eventually(lambda: turning.hands.started, "it runs")
        eventually(lambda: turning.idle or not turning.loop._more, "no tick is wanted")  # pyright: ignore[reportPrivateUsage]
        database.on_step(failing("append", StoreUnavailable("read only"), lambda: well))
        turning.bell.put(Report(turning.hands.started[0], Succeeded()))
        eventually(lambda: "store unavailable" in events(caplog), "it could not be recorded")
        well = True
        turning.bell.ring()
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it is recorded")
        eventually(lambda: "store available again" in events(caplog), "that is said")


@pytest.mark.acceptance("Q07")
def test_q07_a_long_outage_is_three_lines_and_few_tries(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """Rings and runs that end do not shorten the pause, and no attempt is spent."""
    caplog.set_level(logging.INFO)
    tries = 0
    well = False

    def over() -> bool:
        nonlocal tries
        tries += 1
        return well

    with Turning(database, evolve(QUICK, outage_error=1.0)) as turning:
        [job] = due(turning.store, 1)
        database.on_step(failing("append", StoreUnavailable("read only"), over))

        def said() -> bool:
            turning.bell.ring()
            return "store still unavailable" in events(caplog)

        eventually(said, "it is an ERROR in the end")
        # 0, 0.125, 0.375, 0.875, and the ERROR at 1.0.
        assert tries <= 6
        well = True
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it is done at last")
        eventually(lambda: "store available again" in events(caplog), "that is said")
    told = [each for each in events(caplog) if each.startswith("store")]
    assert told == ["store unavailable", "store still unavailable", "store available again"]
    with turning.store.transaction() as tx:
        [stored] = tx.load([job.id]).values()
    assert (stored.starts, stored.attempts) == (1, 0)


@pytest.mark.acceptance("Q07")
def test_q07_the_pause_doubles_to_thirty_seconds_and_the_error_comes_at_sixty(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    outage, now, pauses = Outage(WorkerSettings().outage_error), 1000.0, list[float]()
    error_at = 0.0
    while now < 1300:
        outage.failed("tick", StoreUnavailable("gone"), now)
        if not error_at and "store still unavailable" in events(caplog):
            error_at = now
        pauses.append(outage.patience(now, stopping=False))
        assert outage.patience(now, stopping=True) <= 1.0
        now += pauses[-1]
    assert pauses[:8] == [0.125, 0.25, 0.5, 1, 2, 4, 8, 16]
    assert set(pauses[9:]) == {30}
    assert error_at == 1060
    assert not outage.succeeded("look", now), "what did not fail says nothing"
    assert outage.succeeded("tick", now)
    assert len(events(caplog)) == 3


def test_an_error_that_nobody_foresaw_is_told_once_and_the_loop_goes_on(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tries = 0

    def enough() -> bool:
        nonlocal tries
        tries += 1
        return tries > 3

    with Turning(database) as turning:
        [job] = due(turning.store, 1)
        database.on_step(failing("claim", RuntimeError("a bug, password=hunter2"), enough))
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it is done at last")
        eventually(lambda: "store available again" in events(caplog), "that is said")
    assert events(caplog).count("tick failed") == 1
    [failed] = [record for record in caplog.records if record.getMessage().startswith("tick fa")]
    assert failed.levelno == logging.ERROR
    assert "hunter2" not in failed.getMessage()


def test_a_stop_without_a_store_is_bounded(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    with Turning(database) as turning:
        due(turning.store, 1)
        database.on_step(away_from("claim"))
        eventually(lambda: turning.loop.ticker.in_doubt, "a tick has failed")
        turning.stop()  # It gives up the store, long before this gives up the loop.
        assert not turning.loop.settled
    assert "stop gave up on unsettled runs" in events(caplog)


def test_a_buried_worker_that_is_full_starts_anew(database: MemoryDatabase) -> None:
    with Turning(database, evolve(QUICK, concurrency=1)) as turning:
        turning.hands.finish = False
        [job] = due(turning.store, 1)
        eventually(lambda: turning.hands.started, "it runs")
        other = MemoryStore.on(database)
        with other.transaction() as tx:
            assert tx.bury(W1)
        eventually(lambda: turning.buried == 1, "it has found out")
        eventually(lambda: turning.hands.forgotten, "its run is forgotten")
        assert [each.id for each in turning.hands.forgotten] == [job.id]


def test_a_worker_without_jobs_asks_one_question_at_a_time(database: MemoryDatabase) -> None:
    """What comes next, and now and then whether it still lives and holds nothing."""
    questions: list[str] = []
    with Turning(database, evolve(QUICK, floor_seconds=0.1)) as turning:
        eventually(lambda: turning.idle, "it sleeps")
        database.on_step(questions.append)
        eventually(lambda: questions.count("is_idle") > 3, "several heartbeats pass")
        assert {*questions} == {"begin", "outlook", "is_idle", "commit", "committed"}


@pytest.mark.case("C23")
@pytest.mark.parametrize("pace", [{"poll": 60.0}, {"floor_seconds": 60.0}], ids=str)
def test_a_full_worker_that_knows_of_more_looks_rarely(
    database: MemoryDatabase, pace: dict[str, Any]
) -> None:
    """A look is dear while an old snapshot keeps vacuum away, and would tell next to nothing."""
    questions: list[str] = []
    with Turning(database, evolve(QUICK, concurrency=1, **pace)) as turning:
        turning.hands.finish = False
        due(turning.store, 5)
        turning.bell.ring()
        eventually(lambda: len(turning.hands.started) == 1, "one runs")
        database.on_step(questions.append)
        turning.bell.put(Report(turning.hands.started[0], Succeeded()))
        eventually(lambda: len(turning.hands.started) == 2, "the next one runs")
        eventually(lambda: questions.count("leased_by") > 2, "several heartbeats pass")
        assert "outlook" not in questions
        turning.loop.stop()
        turning.bell.put(Report(turning.hands.started[1], Succeeded()))


def test_a_worker_without_jobs_lets_go_on_who_still_waits(database: MemoryDatabase) -> None:
    """Somebody held a row when its job was to go on, and nothing else is due."""
    questions: list[str] = []
    with Turning(database) as turning:
        [job] = due(turning.store, 1)
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it has run")
        eventually(lambda: turning.idle, "it sleeps")
        database.on_step(questions.append)
        turning.loop.ticker.owe([job])
        eventually(lambda: "waiting" in questions, "it asks who waits")
        eventually(lambda: not turning.loop.ticker.owes, "nobody does")


def test_a_buried_worker_without_jobs_starts_anew(database: MemoryDatabase) -> None:
    with Turning(database) as turning:
        eventually(lambda: turning.idle, "it sleeps")
        other = MemoryStore.on(database)
        with other.transaction() as tx:
            assert tx.bury(W1)
        eventually(lambda: turning.buried == 1, "it has found out")
        [job] = due(turning.store, 1)
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it works again")


def test_a_lease_that_nobody_here_runs_is_given_back(database: MemoryDatabase) -> None:
    """The commit of a lost connection may go through after all else was looked at."""
    with Turning(database) as turning:
        eventually(lambda: turning.idle, "it sleeps")
        other = MemoryStore.on(database)
        [job] = write(other, birth(new_spec(1, queue="of others"), now(other)))
        lease(other, job, W1)
        eventually(lambda: kinds(other, job)[-1] == "released", "it is given back")


def test_ticks_that_failed_are_made_up_for_although_nothing_is_left_to_do(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    well = False
    with Turning(database) as turning:
        eventually(lambda: turning.idle, "it sleeps")
        database.on_step(failing("leased_by", StoreUnavailable("read only"), lambda: well))
        other = MemoryStore.on(database)
        [job] = write(other, birth(new_spec(1, queue="of others"), now(other)))
        stray = lease(other, job, W1)
        eventually(lambda: "store unavailable" in events(caplog), "it cannot be given back")
        write(other, complete(stray))
        well = True
        eventually(lambda: "store available again" in events(caplog), "that is said")


def test_what_is_due_and_cannot_be_had_is_asked_for_less_and_less(
    database: MemoryDatabase,
) -> None:
    """Somebody holds the row for long; asking each 50 ms would not free it."""
    questions: list[str] = []
    with Turning(database, evolve(SETTINGS, poll=0.8)) as turning:
        eventually(lambda: turning.idle, "it sleeps")
        [job] = due(turning.store, 1)
        holder = database.begin()
        holder.session.lock("job", job.id)
        turning.bell.ring()
        database.on_step(questions.append)
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > 1.5, "a while")
        # Looks and claims: at 0, 50, 150, 350, 750 ms, and then each poll.
        assert questions.count("claim") <= 6 + (time.monotonic() - began) / 0.8
        holder.rollback()
        eventually(lambda: kinds(turning.store, job)[-1] == "completed", "it runs when it is free")


def test_a_suspect_that_ends_makes_room_for_the_next_at_once(database: MemoryDatabase) -> None:
    store = MemoryStore.on(database)
    jobs = [interrupt(store, job) for job in due(store, 30)]
    with Turning(database, evolve(SETTINGS, poll=600.0)) as turning:
        eventually(lambda: len(turning.hands.started) == len(jobs), "all have run, without a poll")


def test_a_drain_is_over_only_when_nothing_is_due_running_or_unsaid(
    database: MemoryDatabase,
) -> None:
    with Turning(database) as turning:
        turning.hands.finish = False
        [job] = due(turning.store, 1)
        turning.bell.ring()
        eventually(lambda: turning.hands.started, "it runs")
        before = turning.idle
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > 0.3, "some looks later")
        assert turning.idle == before
        turning.bell.put(Report(turning.hands.started[0], Succeeded()))
        eventually(lambda: turning.idle > before, "it is idle")
        assert kinds(turning.store, job)[-1] == "completed"


def test_what_the_settling_thread_cannot_record_the_tick_records(
    database: MemoryDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """One connection is left of two, where a role or a server has no more to give."""
    caplog.set_level(logging.INFO)
    well = False
    with Turning(database, evolve(QUICK, concurrency=FEW + 10)) as turning:
        settling = turning.loop.settling

        def refused(name: str) -> None:
            if not well and current_thread() is turning.settler:
                raise StoreUnavailable("too many connections")

        database.on_step(refused)
        jobs = due(turning.store, 4 * (FEW + 10))
        done = ["completed"] * len(jobs)
        eventually(lambda: [kinds(turning.store, each)[-1] for each in jobs] == done, "it goes on")
        assert events(caplog).count("store unavailable") == 1
        assert "store available again" not in events(caplog)
        well = True
        eventually(lambda: "store available again" in events(caplog), "nothing is to be done")
        eventually(lambda: len(settling) == 0, "nothing is left")
    assert events(caplog).count("store unavailable") == 1
