"""Whatever a handler returns, raises or does: its job ends, and its worker lives on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from leasebook import Book, Group, Retry
from leasebook.domain.events import Completed, Failed, RetryScheduled
from leasebook.domain.limits import ERROR_CHARS_MAX
from leasebook.domain.values import Outcome
from leasebook.infra.caller_ports import Receipt
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker import app

#: What each does to its job: the result, or the outcome and a part of the error.
RESULTS = {"nul": r'"a\\u0000b"', "surrogate": r'"\\ud800"', "huge int": f'"{2**70}"'}
REFUSED = {"object": "Empty", "nan": "ResultRefused", "huge": "bytes"}
ERRORS = {
    "long error": "ValueError: password=***",
    "sullen": "Sullen: (no text)",
    "surrogate error": r"ValueError: lone \ud800 and nul \0",
    "bytes error": "ValueError: b'",
    "exit": "SystemExit: 3",
    "interrupt": "KeyboardInterrupt",
    "generator exit": "GeneratorExit",
    "cancelled": "CancelledError",
    "recursion": "RecursionError",
    "lookup": "LookupError: lookup",
    "liar": "cannot be described",
}


def error_of(yard: Yard, receipt: Receipt | UUID) -> str:
    failed = yard.events(receipt)[-1]
    assert isinstance(failed, Failed)
    assert failed.error is not None
    return failed.error


@pytest.mark.case("C42", "C43", "C45")
@pytest.mark.parametrize("handler", ["bad", "bad_thread"])
def test_every_bad_handler_ends_its_job_and_its_worker_lives(yard: Yard, handler: str) -> None:
    ways = [*RESULTS, *REFUSED, *ERRORS]
    with yard.caller() as caller:
        jobs = {how: app.book.enqueue(caller, handler, {"how": how}) for how in ways}
    worker = yard.worker("--poll", "0.05")
    yard.all_over(list(jobs.values()))
    for how, result in RESULTS.items():
        completed = yard.events(jobs[how])[-1]
        assert isinstance(completed, Completed), how
        assert completed.result == result, how
    for how, part in REFUSED.items():
        assert part in error_of(yard, jobs[how]), how
        job = yard.job(jobs[how])
        # Another run would give the same result, after doing all its work again.
        assert (job.outcome, job.starts) == (Outcome.REJECTED, 1), how
    for how, start in ERRORS.items():
        error = error_of(yard, jobs[how])
        assert start in error, how
        assert len(error) <= ERROR_CHARS_MAX, how
        job = yard.job(jobs[how])
        assert (job.outcome, job.starts, job.attempts) == (Outcome.EXHAUSTED, 3, 3), how
        retries = [each for each in yard.events(jobs[how]) if isinstance(each, RetryScheduled)]
        assert [start in each.error for each in retries] == [True, True], how
    assert "hunter2" not in "".join(worker.raw)
    with yard.caller() as caller:
        behind = [app.quick.enqueue(caller, n) for n in range(3)]
    assert yard.all_over(behind) == {"done": 3}
    assert worker.process.poll() is None
    assert worker.stop() == 0


@pytest.mark.case("C43")
def test_arguments_that_no_longer_decode_end_the_job(yard: Yard) -> None:
    """An earlier release wrote them; this one declares another type."""
    old = Book(yard.dsn)

    @old.job(retry=Retry(1, delay=0.1))
    def strict(m: int) -> None: ...

    with yard.caller() as caller:
        receipt = strict.enqueue(caller, 1)
    yard.worker("--poll", "0.05")
    job = yard.over(receipt)
    assert (job.outcome, job.starts) == (Outcome.EXHAUSTED, 2)
    assert "args.m" in error_of(yard, receipt)
    assert yard.effects() == []
    old.close()


@pytest.mark.case("C43")
def test_a_group_with_a_bad_item_ends_and_says_which_item(yard: Yard) -> None:
    old = Book(yard.dsn)

    @old.job(group=Group(window=0.1, max_hold=1), retry=Retry(1, delay=0.1))
    def strict_group(items: list[Any]) -> None: ...

    with yard.caller() as caller:
        strict_group.enqueue_many(caller, [1, "two", 3], group_key="k")
        app.stream.enqueue(caller, 1, group_key="k")
    yard.worker("--poll", "0.05")
    find = "select job_id from leasebook.job_events where kind = 'failed.v1'"
    [(job_id,)] = eventually(lambda: yard.sql(find), "the group fails")
    job = yard.job(job_id)
    assert (job.outcome, job.starts, len(job.items)) == (Outcome.EXHAUSTED, 2, 3)
    assert "items[1]" in error_of(yard, job_id)
    eventually(lambda: [each.note for each in yard.effects()] == ["1"], "the other group runs")
    old.close()
