"""What a worker makes of errors that are no failure of the job's."""

from __future__ import annotations

import pytest
from attrs import evolve

from leasebook import Book, Rejected
from leasebook.domain.job import Job
from leasebook.domain.values import ReleaseReason
from leasebook.infra.app.registry import JobType
from leasebook.infra.worker.answers import Broke, GaveBack
from leasebook.infra.worker.outcome import OUTAGES_MAX, answer_for
from tests.support.lives import Life
from tests.worker.effects_app import HttpError


def handler() -> JobType:
    book = Book()

    @book.job(retry=3)
    def work() -> None: ...

    return work


def after(outages: int) -> Job:
    """A job that runs for the first time after so many runs that spent nothing."""
    job = Life().enqueue().lease(1).now
    return evolve(job, starts=outages + 1)


@pytest.mark.parametrize("error", [ConnectionRefusedError("nobody"), HttpError(503)])
def test_an_outage_spends_nothing_and_the_waits_grow(error: Exception) -> None:
    waits: list[float] = []
    for outages in range(OUTAGES_MAX):
        answer = answer_for(error, handler(), after(outages))
        assert isinstance(answer, GaveBack)
        assert answer.reason is ReleaseReason.OUTAGE
        assert type(error).__name__ in (answer.note or "")
        waits.append(answer.delay)
    assert waits[:4] == [2.0, 4.0, 8.0, 16.0]
    assert waits == sorted(waits)
    assert waits[-1] == 300.0
    # One that lasts is somebody's to look at.
    assert isinstance(answer_for(error, handler(), after(OUTAGES_MAX)), Broke)


def test_a_limit_that_names_its_time_is_waited_for() -> None:
    answer = answer_for(HttpError(429, **{"Retry-After": "7"}), handler(), after(3))
    assert isinstance(answer, GaveBack)
    assert (answer.reason, answer.delay) == (ReleaseReason.RATE_LIMITED, 7.0)
    assert "s3cret" not in (answer.note or "")
    assert isinstance(answer_for(HttpError(429), handler(), after(0)), Broke)


def test_a_rejection_that_the_handler_states_ends_the_job() -> None:
    answer = answer_for(Rejected("no such channel"), handler(), after(0))
    assert answer == Broke("no such channel", answer.delay, retry=False)  # type: ignore[union-attr]
