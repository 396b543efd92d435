"""A job that kills its worker takes no bystander to its end."""

from __future__ import annotations

from itertools import count

import pytest

from leasebook.domain import ExpiryCause, Job, Outcome, State, admit, change, suspects_allowed
from leasebook.domain.commands import Command, Complete, Enqueue, ExpireLease, TakeLease
from tests.support.lives import Life, at, spec


def suspect(number: int = 1) -> Life:
    life = Life()
    life.do(Enqueue(at(0), spec(number, retries=3)))
    return life.lease(1).expire(2)


def test_jobs_are_admitted_in_claim_order_up_to_the_slots() -> None:
    fresh = [Life().enqueue().now for _ in range(4)]
    assert admit(fresh, 3, 1) == tuple(fresh[:3])
    assert admit(fresh, 0, 1) == ()


def test_one_suspect_starts_and_the_others_leave_their_slots_to_the_next() -> None:
    first, second = suspect(1).now, suspect(2).now
    fresh = Life().enqueue().now
    assert admit((first, second, fresh), 2, 1) == (first, fresh)
    assert admit((first, second, fresh), 2, 0) == (fresh,)


def test_a_suspect_that_has_lived_for_a_while_makes_room_for_the_next() -> None:
    running = suspect().lease(10).now
    assert suspects_allowed((running,), at(11.9)) == 0
    assert suspects_allowed((running,), at(12)) == 1
    assert suspects_allowed((running,), at(12), suspect_seconds=10) == 0
    assert suspects_allowed((Life().enqueue().lease(1).now,), at(2)) == 1
    assert suspects_allowed((), at(0)) == 1


@pytest.mark.parametrize("slots", [1, 7, 50])
@pytest.mark.parametrize("poison", [0, 100, 200])
def test_q13_poison_among_innocents(slots: int, poison: int) -> None:
    """One job always kills its worker; 200 innocents have two attempts each; all 200 finish."""
    jobs: dict[int, Job] = {}

    def do(number: int, command: Command) -> None:
        jobs[number] = change(jobs.get(number), command).after

    for number in range(201):
        do(number, Enqueue(at(0), spec(number + 1, retries=1)))
    crashes = 0
    for second in count(1):
        waiting = [number for number, job in jobs.items() if job.state is State.QUEUED]
        if not waiting:
            break
        ordered = sorted(waiting, key=lambda number: (jobs[number].due_at, number))
        admitted = admit([jobs[n] for n in ordered], slots, suspects_allowed((), at(second)))
        running = [number for number in ordered if jobs[number] in admitted]
        for number in running:
            do(number, TakeLease(at(second), f"w{crashes}"))
        crashes += poison in running
        for number in running:
            token = jobs[number].version
            if poison in running:
                do(number, ExpireLease(at(second), token, ExpiryCause.WORKER_LOST))
            else:
                do(number, Complete(at(second), token))
    assert crashes == 2
    assert jobs[poison].outcome is Outcome.LOST
    innocents = [job for number, job in jobs.items() if number != poison]
    assert len(innocents) == 200
    assert all(job.outcome is Outcome.DONE for job in innocents)
