"""Lost leases, jobs that ran twice at once, late writes, and errors by what they have in common."""

from __future__ import annotations

from itertools import count

import pytest

from leasebook.domain import ExpiryCause, Recorded
from leasebook.domain.values import OnExpired
from leasebook.projections.replay.facts import AuditLine, gather
from leasebook.projections.replay.faults import Faults, faults, fingerprint
from leasebook.projections.replay.runs import runs
from tests.support.facts import log, refused
from tests.support.lives import Life, at, job_id


def found(events: list[Recorded], *lines: AuditLine) -> Faults:
    return faults(runs(events), gather(lines))


@pytest.mark.acceptance("E09")
def test_a_run_went_on_after_its_lease_was_lost() -> None:
    life = Life().enqueue(lease=9).lease(1).expire(10, ExpiryCause.LEASE_ENDED).lease(12, "w2")
    life.complete(20)
    late = refused(15.5, 1, lease=2)
    told = found(life.stream, late)
    (lost,) = told.lost
    assert (lost.run.worker, lost.run.why, lost.again) == ("w1", "lease_ended", at(12))
    assert lost.late is not None
    (twice,) = told.duplicates
    assert (twice.first.worker, twice.second.worker) == ("w1", "w2")
    assert twice.microseconds == 3_500_000
    assert told.refused == (twice.late,)
    assert not told.clean


@pytest.mark.parametrize(
    ("late", "seconds"),
    [(11.0, None), (12.0, None), (12.25, 0.25), (20.0, 8.0), (50.0, 8.0)],
)
def test_they_overlap_until_the_first_of_them_ends(late: float, seconds: float | None) -> None:
    life = Life().enqueue().lease(1).expire(10).lease(12, "w2").complete(20)
    told = found(life.stream, refused(late, 1, lease=2))
    overlaps = [each.microseconds / 1e6 for each in told.duplicates]
    assert overlaps == ([] if seconds is None else [seconds])


def test_a_second_run_that_came_late_as_well() -> None:
    life = Life().enqueue().lease(1).expire(10).lease(12, "w2").expire(14).lease(15, "w3")
    told = found(life.stream, refused(16, 1, lease=4, worker="w2"), refused(18, 1, lease=2))
    pairs = {(each.first.start, each.second.start): each.microseconds for each in told.duplicates}
    assert pairs == {(1, 2): 4_000_000, (1, 3): 3_000_000, (2, 3): 1_000_000}


def test_a_worker_that_was_never_heard_of_again_is_no_duplicate() -> None:
    life = Life().enqueue().lease(1).expire(10).lease(12, "w2").complete(20)
    told = found(life.stream)
    assert (len(told.lost), told.duplicates) == (1, ())


def test_a_last_lease_that_was_lost() -> None:
    life = Life().enqueue(retries=0).lease(1).expire(10)
    (lost,) = found(life.stream).lost
    assert (lost.run.end, lost.run.why, lost.again) == ("failed", "lost", None)


def test_a_job_that_is_not_run_again_when_it_is_interrupted() -> None:
    life = Life().enqueue(on_expired=OnExpired.ABORT).lease(1).expire(10)
    told = found(life.stream)
    assert (told.lost[0].run.why, told.errors) == ("aborted", ())


def test_a_clean_log() -> None:
    assert found(Life().enqueue().lease(1).complete(2).stream).clean
    assert found([]).clean


@pytest.mark.acceptance("E09")
def test_errors_by_what_they_have_in_common() -> None:
    events = count(1)
    ours = log(
        Life(events).enqueue(number=1).lease(1).fail(2, "KeyError: 'a' in row 17")
        .lease(70).fail(71, "KeyError: 'b c' in row 4"),
        Life(events).enqueue(number=2, name="mail").lease(1).fail(1.5, "KeyError: 'x' in row 9"),
        Life(events).enqueue(number=3).lease(1).fail(2, "boom", retry=False),
    )  # fmt: skip
    first, second = found(ours).errors
    assert first.text == "KeyError: '…' in row <n>"
    assert (first.count, first.jobs, first.names) == (3, 2, {"sync_page", "mail"})
    assert (first.first, first.last, first.example) == (at(1.5), at(71), job_id(2))
    assert (second.text, second.count) == ("boom", 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("timed out after 30.5 s", "timed out after <n> s"),
        ("job 0192f0c4-7d2e-7c30-8b1e-1234567890ab is gone", "job <uuid> is gone"),
        ("can't open 'a.md' or \"b.md\"", "can't open '…' or '…'"),
        ("at 0x7f3a2b <Page object>", "at <hex> <Page object>"),
        ("commit 9fceb02d0ae598e9 is missing", "commit <hex> is missing"),
        ("127.0.0.1:5432 refused", "<n> refused"),
        (
            "503 from https://x:***@index.example/a/b.md?c=1 (app.py:7)",
            "<n> from <url> (app.py:<n>)",
        ),
        ("12345678 and 5", "<n> and <n>"),
        ("Traceback (most recent call last):\n  File x\nValueError: no 5\n", "ValueError: no <n>"),
        ("", "no error text"),
    ],
)
def test_fingerprints(error: str, expected: str) -> None:
    assert fingerprint(error) == expected


def test_a_window_and_chosen_jobs() -> None:
    life = Life().enqueue().lease(1).expire(10).lease(12, "w2").fail(20)
    facts = gather([refused(15, 1, lease=2)])
    assert faults(runs(life.stream), facts, at(0), at(9)).clean
    early = faults(runs(life.stream), facts, at(0), at(14))
    assert (len(early.lost), len(early.duplicates), early.refused) == (1, 1, ())
    late = faults(runs(life.stream), facts, at(13), at(30), jobs=[job_id(2)])
    assert (late.lost, late.duplicates, late.refused, len(late.errors)) == ((), (), (), 1)
