"""A worker's ticks by hand: no process, no thread, no event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from leasebook.domain.job import Job, JobSpec, Policy
from leasebook.domain.log import Recorded
from leasebook.infra.enrolment import Enrolment
from leasebook.infra.memory import MemoryDatabase, MemoryLog
from leasebook.infra.ports import Store, StoreUnavailable
from leasebook.infra.worker.answers import Answer, Report
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.tick import Ask, Ticked, Ticker
from tests.conformance.making import enqueue, job_id, new_spec

W1, W2 = "w1", "w2"
SETTINGS = WorkerSettings()


def ticker(store: Store, worker: str = W1) -> Ticker:
    """The ticks of a worker that has reported for work."""
    store.enroll(Enrolment(worker, worker, "host", 1, 10, ("default",), "", ("work",)))
    numbers = iter(range(500, 1000))
    names = ("fold", "work")
    return Ticker(store, worker, ("default",), names, SETTINGS, lambda: job_id(next(numbers)))


def due(store: Store, count: int, first: int = 1, **policy: float) -> list[Job]:
    """Jobs that are due."""
    given = Policy(**policy)  # type: ignore[arg-type]
    specs: list[JobSpec] = [new_spec(first + n, policy=given) for n in range(count)]
    return enqueue(store, *specs)


def tick(
    one: Ticker, *reports: Report, running: Sequence[Job] = (), slots: int = 0, **pace: Any
) -> Ticked:
    """One tick of these reports."""
    return one.tick(Ask(reports, running, slots, **pace))


def leased(one: Ticker, slots: int = 10) -> list[Job]:
    """Lease what is due."""
    return sorted(tick(one, slots=slots).leased, key=lambda job: job.id)


def report(job: Job, answer: Answer) -> Report:
    return Report(job, answer)


def stream(store: Store, job: UUID) -> list[Recorded]:
    """The stream of a job."""
    with store.transaction() as tx:
        return list(tx.stream(job))


def kinds(store: Store, job: Job) -> list[str]:
    """What happened to a job, in one word each."""
    return [each.event.kind for each in stream(store, job.id)]


def breaking(step: str, error: Exception, times: int = 1) -> Callable[[str], None]:
    """A seam that raises at a step so many times."""
    left = times

    def seam(name: str) -> None:
        nonlocal left
        if name == step and left > 0:
            left -= 1
            raise error

    return seam


def lost_answer(database: MemoryDatabase, times: int = 1) -> None:
    """The next commits go through and their answers are lost."""
    database.on_step(breaking("committed", StoreUnavailable("the connection is gone"), times))


def committed_events(database: MemoryDatabase) -> int:
    log = MemoryLog(database)
    return sum(len(log.stream(each)) for each in log.job_ids())
