"""Histories, word for word."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from leasebook.domain import ExpiryCause, OnExpired, Outcome, ReleaseReason
from leasebook.projections.story import tell
from leasebook.projections.wording import count, duration, one_line
from tests.support.lives import Life, at, item

NAMES = {"w1": "web-1", "w2": "web-2"}


def told(life: Life) -> str:
    return "\n".join(str(line) for line in tell(life.stream, NAMES)) + "\n"


def test_a_job_that_had_a_hard_time() -> None:
    life = Life().enqueue(label="nightly", owner="ann", subject="page:a.md", lease=60)
    life.lease(0.025).expire(1.911).lease(1.95, "w2").fail(2).lease(62.01)
    life.release(63, delay=30, note="Retry-After: 30").lease(93.5, "w9").renew(130, 190)
    life.renew(160, 220).complete(200.5)
    assert told(life) == (
        """\
job 01920000-0000-7000-8000-000000000001: sync_page, label nightly, owner ann, subject page:a.md
2026-03-01 14:03:22.115  enqueued on queue default, priority 5; due at once
           14:03:22.140  leased by web-1 (start 1, attempt 1 of 4) after waiting 25 ms
           14:03:24.026  lease ended without an answer: its worker died after 1.8 s; """
        """attempt 1 of 4 is spent; due at once
           14:03:24.065  leased by web-2 (start 2, attempt 2 of 4) after waiting 39 ms
           14:03:24.115  failed after 50 ms: ValueError: boom; attempt 2 of 4 is spent; """
        """due in 1 min, at 14:04:24.115
           14:04:24.125  leased by web-1 (start 3, attempt 3 of 4) """
        """after waiting 1 min for its retry and 10 ms for a worker
           14:04:25.115  given back after 990 ms: it met a rate limit (Retry-After: 30); """
        """no attempt spent; due in 30 s, at 14:04:55.115
           14:04:55.615  leased by w9 (start 4, attempt 3 of 4) """
        """after waiting 30 s as asked and 500 ms for a worker
           14:05:32.115  2 heartbeats, the last at 14:06:02.115: """
        """its lease now runs until 14:07:02.115
           14:06:42.615  done after 1 min 47 s; 4 starts, 3 min 20 s since it was enqueued
"""
    )


def test_a_delayed_job_that_failed_on_another_day() -> None:
    error = "Traceback (most recent call last):\n  File x\nValueError: no\n"
    life = Life().enqueue(run_at=86_400, retries=0, priority=9, queue="mail")
    life.lease(86_400.004, "w2").fail(86_401, error)
    assert told(life) == (
        """\
job 01920000-0000-7000-8000-000000000001: sync_page
2026-03-01 14:03:22.115  enqueued on queue mail, priority 9; due in 1 d, at 2026-03-02 14:03:22.115
2026-03-02 14:03:22.119  leased by web-2 (start 1, attempt 1 of 1) """
        """after waiting 1 d as asked and 4 ms for a worker
           14:03:23.115  failed for good after 996 ms: ValueError: no; """
        """attempt 1 of 1 is spent; held for an operator
"""
    )


def test_a_group() -> None:
    life = Life().open_group(item(1), item(2), seconds=0.3).join(item(3, 4), seconds=4).lease(4.1)
    life.expire(604.2, ExpiryCause.LEASE_ENDED).lease(604.3)
    life.expire(1_204.4, ExpiryCause.TIMED_OUT).lease(1_205).fail(1_206, "bad", retry=False)
    assert told(life) == (
        """\
job 01920000-0000-7000-8000-000000000001: sync_page
2026-03-01 14:03:22.415  opened for the items of a.md on queue default, priority 5; """
        """due in 9.7 s, at 14:03:32.115
           14:03:22.415  2 items joined (2 of 3); due in 9.7 s, at 14:03:32.115
           14:03:26.115  1 item joined (3 of 3); due in 10 s, at 14:03:36.115
           14:03:26.115  closed with 3 items, it is full; due at once
           14:03:26.215  leased by web-1 (start 1, attempt 1 of 4) """
        """after waiting 3.7 s for its items and 100 ms for a worker
           14:13:26.315  lease ended without an answer after 10 min; """
        """attempt 1 of 4 is spent; due at once
           14:13:26.415  leased by web-1 (start 2, attempt 2 of 4) after waiting 100 ms
           14:23:26.515  stopped after 10 min: it ran past its time-out of 10 min; """
        """attempt 2 of 4 is spent; due at once
           14:23:27.115  leased by web-1 (start 3, attempt 3 of 4) after waiting 600 ms
           14:23:28.115  failed for good after 1 s: bad; no retry is of use; """
        """attempt 3 of 4 is spent; held for an operator; 3 starts, 20 min 5 s since it was enqueued
"""
    )


@pytest.mark.parametrize(
    ("life", "last"),
    [
        (Life().enqueue().lease(1).renew(1, 2), "leased by web-1"),
        (
            Life().enqueue(lease=60).lease(1).renew(40, 100),
            "heartbeat: its lease now runs until 14:05:02.115",
        ),
        (Life().enqueue().lease(1).complete(1.012), "done after 12 ms"),
        (
            Life().enqueue().lease(1).complete(2, outcome=Outcome.SKIPPED),
            "skipped after 1 s",
        ),
        (
            Life().enqueue(retries=0).lease(1).expire(3),
            "lost after 2 s: interrupted on its last attempt: its worker died; "
            "attempt 1 of 1 is spent; held for an operator",
        ),
        (
            Life().enqueue(on_expired=OnExpired.ABORT).lease(1).expire(3),
            "stopped after 2 s, aborted: its worker died; it is not run again; not held",
        ),
        (
            Life().enqueue(on_expired=OnExpired.ABORT).lease(1).release(3, ReleaseReason.SHUTDOWN),
            "stopped after 2 s, aborted: its worker was stopped in the middle of it; "
            "it is not run again; not held",
        ),
        (
            Life().enqueue(expires_at=at(10)).lease(3_700),
            "expired after 1 h 1 min: still waiting when it expired at "
            "2026-03-01T14:03:32.115000+00:00; not held",
        ),
        (
            Life().enqueue(run_at=3_600).reschedule(10, 70),
            "moved to another time; due in 1 min, at 14:04:32.115",
        ),
        (
            Life().enqueue(run_at=3_600).reschedule(10, 70).lease(70.5),
            "leased by web-1 (start 1, attempt 1 of 4) "
            "after waiting 1 min 10 s as asked and 500 ms for a worker",
        ),
        (
            Life().open_group(item(1)).close(4),
            "closed with 1 item, before it was full; due at once",
        ),
        (
            Life().enqueue().lease(1).release(2, ReleaseReason.SHUTDOWN),
            "given back after 1 s: its worker shut down; no attempt spent; due at once",
        ),
    ],
    ids=lambda each: each.split()[0] if isinstance(each, str) else "",
)
def test_last_lines(life: Life, last: str) -> None:
    assert tell(life.stream, NAMES)[-1].text.startswith(last)


def test_lines_are_for_programs_too() -> None:
    lines = tell(Life().enqueue().lease(1).stream, NAMES)
    assert [(line.version, line.at) for line in lines] == [(None, None), (1, at(0)), (2, at(1))]


def test_times_are_shown_in_the_zone_asked_for() -> None:
    zone = timezone(timedelta(hours=10))
    lines = tell(Life().enqueue().lease(1).stream, {}, zone)
    assert [line.stamp for line in lines] == ["", "2026-03-02 00:03:22.115", "00:03:23.115"]


def test_a_stream_that_cannot_be_told() -> None:
    assert tell([], NAMES) == []
    with pytest.raises(ValueError, match="does not begin with its birth"):
        tell(Life().enqueue().lease(1).stream[1:], NAMES)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"),
        (0.0004, "0 ms"),
        (0.999, "999 ms"),
        (1, "1 s"),
        (59.99, "59.9 s"),
        (60, "1 min"),
        (123, "2 min 3 s"),
        (3_600, "1 h"),
        (3_725, "1 h 2 min"),
        (100_000, "1 d 3 h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(timedelta(seconds=seconds)) == text


def test_small_words() -> None:
    assert [count(n, "item") for n in (0, 1, 1_234)] == ["0 items", "1 item", "1,234 items"]
    assert one_line(" \n") == "no error text"
    assert one_line("first\nsecond") == "first"
    assert one_line("x" * 500) == "x" * 199 + "…"
