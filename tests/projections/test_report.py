"""The numbers of a log that is small enough to count by hand."""

from __future__ import annotations

from itertools import count

from leasebook.domain import Outcome, Recorded, ReleaseReason
from leasebook.domain.commands import Enqueue, OpenGroup
from leasebook.projections.report import interrupted, summarise, worst
from tests.support.lives import Life, at, group_spec, item, job_id, spec


def small_log() -> list[Recorded]:
    event_ids = count(1)

    def life(number: int, **given: object) -> Life:
        made = Life(event_ids)
        made.do(Enqueue(at(0), spec(number, **given)))
        return made

    grouped = Life(event_ids)
    grouped.do(OpenGroup(at(0), group_spec(4), (item(1), item(2), item(3))))
    waiting = Life(event_ids)
    waiting.do(OpenGroup(at(0), group_spec(5), (item(4),)))
    lives = [
        life(1).lease(1).expire(2).lease(3).complete(4),  # lost and repeated
        life(2, retries=0).lease(2).expire(5),  # lost on its last attempt
        life(3).lease(4).fail(5).lease(66).release(67).lease(67).fail(68, retry=False),
        grouped.lease(1).complete(2),
        waiting,
        life(6).lease(1).expire(2),  # lost, not started again so far
    ]
    return [recorded for each in lives for recorded in each.stream]


def test_summary() -> None:
    log = small_log()
    summary = summarise(log)
    assert (summary.jobs, summary.events, summary.unfinished) == (6, len(log), 2)
    assert (summary.groups, summary.items, summary.items_completed) == (2, 4, 3)
    assert summary.runs_saved == 2
    assert (summary.runs, summary.retries) == (8, 1)
    assert summary.released == {ReleaseReason.RATE_LIMITED: 1}
    assert summary.rate_limited == 1
    assert (summary.leases_lost, summary.lost_runs_repeated) == (3, 1)
    assert summary.ended == {Outcome.DONE: 2, Outcome.LOST: 1, Outcome.REJECTED: 1}
    assert (summary.completed, summary.failed, summary.held) == (2, 2, 2)
    # Waits: 1 and 1 (job 1), 2 (job 2), 4, 1, 0 (job 3), 1 (group), 1 (job 6).
    assert (summary.start_median, summary.start_max) == (1.0, 4.0)


def test_the_median_of_an_even_number_is_between() -> None:
    life = Life().enqueue().lease(1).fail(2, delay=0).lease(5)
    assert summarise(life.stream).start_median == 2.0


def test_the_worst_has_the_most_starts_and_then_the_longest_life() -> None:
    log = small_log()
    found = worst(log)
    assert found is not None
    assert found[0].job_id == job_id(3)
    by_length = worst(recorded for recorded in log if recorded.job_id != job_id(3))
    assert by_length is not None
    assert by_length[0].job_id == job_id(1), "two starts"


def test_a_preferred_job_goes_before_a_worse_one() -> None:
    found = worst(small_log(), interrupted)
    assert found is not None
    assert found[0].job_id == job_id(1), "two starts, one of them interrupted"
    none_preferred = worst(small_log(), lambda stream: False)
    assert none_preferred is not None
    assert none_preferred[0].job_id == job_id(3)


def test_an_empty_log() -> None:
    summary = summarise([])
    assert (summary.jobs, summary.start_median, summary.start_max) == (0, None, None)
    assert summary.completed == summary.failed == summary.rate_limited == 0
    assert worst([]) is None


def test_a_log_is_read_once_and_lazily() -> None:
    taken: list[int] = []

    def reading() -> object:
        for recorded in small_log():
            taken.append(recorded.event_id)
            yield recorded

    assert summarise(reading()).jobs == 6  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    assert len(taken) == len(small_log())
