"""Backing off, renewing in time, and who may be declared dead."""

from __future__ import annotations

from itertools import pairwise

from leasebook.domain.pacing import BACKOFF_SECONDS_FIRST, Observer, backoff, renew_until
from tests.support.lives import Life, at


def test_backoff_doubles_to_thirty_seconds() -> None:
    waits = [backoff(failures) for failures in range(1, 20)]
    assert backoff(0) == 0
    assert waits[0] == BACKOFF_SECONDS_FIRST
    assert all(after == min(30, 2 * before) for before, after in pairwise(waits))
    assert waits[-1] == backoff(100_000) == 30


def test_a_lease_is_renewed_when_half_is_gone_and_never_past_the_time_out() -> None:
    life = Life().enqueue(lease=60, timeout=100).lease(0)
    assert renew_until(life.now, at(29)) is None
    assert renew_until(life.now, at(30)) == at(90)
    life.renew(30, 90)
    assert renew_until(life.now, at(59)) is None
    assert renew_until(life.now, at(60)) == at(100)
    life.renew(60, 100)
    assert renew_until(life.now, at(99)) is None
    assert renew_until(life.complete(99).now, at(99)) is None


def watch(
    observer: Observer, seconds: list[float], others: dict[float, int], dead_at: float
) -> list[str]:
    """Beat and look at each of ``seconds``; ``others``: from when worker b shows which count."""
    for now in seconds:
        observer.beaten(now)
        observer.dead({"b": max(n for since, n in others.items() if since <= now)}, now)
    return observer.dead({"b": max(others.values())}, dead_at)


def test_a_silent_worker_is_dead_after_thirty_seconds_and_not_before() -> None:
    beats = [float(n) for n in range(0, 60, 5)]
    assert watch(Observer(30), beats[:6], {0: 4}, dead_at=29.9) == []
    assert watch(Observer(30), beats[:7], {0: 4}, dead_at=30.0) == ["b"]
    # It beat at second 10, so its silence counts from there.
    assert watch(Observer(30), beats[:8], {0: 4, 10: 5}, dead_at=39.9) == []
    assert watch(Observer(30), beats[:9], {0: 4, 10: 5}, dead_at=40.0) == ["b"]


def test_beats_at_their_usual_pace_are_no_gap_though_timers_are_late() -> None:
    """A worker beats every 10 seconds, in practice some milliseconds later."""
    late = [n * 10.05 for n in range(4)]
    assert watch(Observer(30), late, {0: 4}, dead_at=30.2) == ["b"]


def test_the_first_back_after_an_outage_declares_nobody_dead() -> None:
    observer = Observer(30)
    before = [float(n) for n in range(0, 40, 10)]
    assert watch(observer, before, {0: 4, 10: 5, 20: 6, 30: 7}, dead_at=30.0) == []
    # The database is away from second 31 to 75.  Nobody could beat.
    assert observer.dead({"b": 7}, 75.0) == [], "not even when it looks before it has beaten"
    observer.beaten(75.0)
    assert observer.dead({"b": 7}, 75.0) == []
    observer.beaten(85.0)
    assert observer.dead({"b": 7}, 85.0) == []
    for now in (95.0, 104.0):
        observer.beaten(now)
    assert observer.dead({"b": 7}, 104.9) == []
    assert observer.dead({"b": 7}, 105.0) == ["b"], "thirty seconds of unbroken watching later"


def test_a_worker_that_is_gone_or_new_is_not_dead() -> None:
    observer = Observer(30)
    for now in range(0, 31, 5):
        observer.beaten(float(now))
        observer.dead({"a": 1}, float(now))
    assert observer.dead({"a-again": 0}, 30.0) == []
    assert observer.dead({"a": 1}, 30.0) == [], "it left the list and came back: watched anew"
