"""The checker finds each broken promise, and nothing in a log that keeps them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from attrs import evolve as replace

from leasebook.domain import (
    ExpiryCause,
    OnExpired,
    Outcome,
    Recorded,
    ReleaseReason,
    State,
    events,
    fold,
)
from leasebook.domain.commands import Enqueue
from leasebook.domain.job import Policy
from leasebook.domain.values import EffectKind
from leasebook.projections.check import INVARIANTS, KeptRow, Violation, check
from leasebook.projections.row import to_row
from tests.support.lives import GROUP, Life, at, in_state, item, job_id, spec

Log = list[Recorded]
SHUTDOWN = ReleaseReason.SHUTDOWN
WORKER_LOST = ExpiryCause.WORKER_LOST


def found(log: Iterable[Recorded], rows: dict[UUID, KeptRow] | None = None) -> set[str]:
    return {violation.invariant for violation in check(log, rows)}


def broken(life: Life, version: int, **changed: Any) -> Log:
    """The stream with fields of one event changed."""
    log = list(life.stream)
    here = log[version - 1]
    log[version - 1] = replace(here, event=replace(here.event, **changed))
    return log


def without(life: Life, *versions: int) -> Log:
    """The stream as it would be had those events never been written."""
    kept = [recorded for recorded in life.stream if recorded.version not in versions]
    return [replace(recorded, version=n) for n, recorded in enumerate(kept, 1)]


def full_life() -> Life:
    """enqueued, leased 2, heartbeat, failed to retry, leased 5, released, leased 7, expired,
    leased 9, done."""
    life = Life().enqueue(retries=3, lease=60, expires_at=at(9_000)).lease(1).renew(40, 100)
    life.fail(50, delay=60).lease(110).release(120, ReleaseReason.SNOOZE, 30)
    return life.lease(150).expire(210, ExpiryCause.LEASE_ENDED).lease(211).complete(212)


def group_life() -> Life:
    """enqueued, two items joined, a third and full, leased, done."""
    return Life().open_group(item(1), item(2)).join(item(3), seconds=5).lease(6).complete(7)


def ordered_life(number: int, **given: Any) -> Life:
    """A waiting job of an ordering key; a later one has a higher number."""
    life = Life(count(1_000 * number))
    life.do(Enqueue(at(0), spec(number, ordering_key="k", **given)))
    return life


def keyed_life(number: int, queue: str = "default") -> Life:
    """A waiting job with a unique key."""
    life = Life(count(1_000 * number))
    life.do(Enqueue(at(0), spec(number, unique_key="k", queue=queue, retries=0)))
    return life


def lives() -> list[Life]:
    made = [full_life(), group_life(), *(in_state(state) for state in State)]
    made.append(Life().enqueue(retries=0).lease(1).expire(2))
    made.append(Life().enqueue(expires_at=at(5)).lease(6))
    made += [effect_life(), uncertain_life()]
    made.append(Life().open_group(item(7), seconds=500))  # collected after its hold
    made.append(Life().enqueue(on_expired=OnExpired.ABORT).lease(1).fail(2).lease(70).expire(71))
    return made


def test_a_log_that_keeps_every_promise() -> None:
    for life in lives():
        assert found(life.stream) == set()
    assert list(check([])) == []


def test_a_unique_key_may_come_again_when_its_job_has_ended_and_on_another_queue() -> None:
    ended, again, elsewhere = keyed_life(1), keyed_life(2), keyed_life(3, "other")
    ended.lease(1).complete(2)
    assert found([*ended.stream, *again.stream, *elsewhere.stream]) == set()


V = list[tuple[str, Callable[[], Log]]]


def effect_life() -> Life:
    """enqueued, leased 2, effect begun, rejected, begun again 5, done 6, failed, leased 8, done."""
    life = Life().enqueue().lease(1).begin(2).reject(3).begin(4).effect(5).fail(6)
    return life.lease(70).complete(71)


def uncertain_life() -> Life:
    """enqueued, leased 2, effect begun, failed."""
    return Life().enqueue().lease(1).begin(2).fail(3)


def leased_again(life: Life) -> Log:
    """As if a run in the middle of an effect were followed by another."""
    expired = replace(life.stream[3], event=events.LeaseExpired(at(3), 2, WORKER_LOST, at(3)))
    again = replace(expired, version=5, event=events.Leased(at(4), "w1", at(604), 2))
    return [*life.stream[:3], expired, again]


PLANTED: V = [
    ("I1", lambda: full_life().stream[:4] + full_life().stream[5:]),
    ("I1", lambda: [replace(each, version=each.version + 1) for each in full_life().stream]),
    ("I1", lambda: broken(full_life(), 3, at=at(0))),
    ("I2", lambda: without(full_life(), 1)),
    ("I2", lambda: without(full_life(), 2)),
    ("I2", lambda: [*in_state(State.DONE).stream, replace(full_life().stream[3], version=4)]),
    ("I3", lambda: [replace(each, version=1) for each in full_life().stream]),
    ("I3", lambda: broken(full_life(), 5, start=1)),
    ("I4", lambda: without(full_life(), 3, 4)),
    ("I4", lambda: broken(full_life(), 3, lease_until=at(9_999))),
    ("I5", lambda: broken(full_life(), 3, lease=1)),
    ("I5", lambda: broken(full_life(), 10, lease=7)),
    ("I5", lambda: broken(in_state(State.FAILED), 3, lease=None)),
    ("I6", lambda: without(full_life(), 3, 4)),
    ("I6", lambda: done_twice()),
    ("I8", lambda: after(ordered_life(1))),
    ("I8", lambda: after(ordered_life(1).lease(1))),
    ("I8", lambda: after(ordered_life(1).lease(1).complete(6))),
    ("I8", lambda: after(ordered_life(1, retries=0).lease(1).fail(2))),
    ("I9", lambda: without(Life().enqueue().block(1).unblock(2).lease(3), 3)),
    ("I9", lambda: broken(full_life(), 5, at=at(109))),
    ("I9", lambda: broken(full_life(), 8, at=at(209))),
    ("I9", lambda: broken(Life().enqueue(expires_at=at(5)).lease(6), 2, at=at(4))),
    ("I10", lambda: with_retries(full_life(), 1)),
    ("I10", lambda: with_retries(in_state(State.FAILED), 1)),
    ("I10", lambda: broken(in_state(State.FAILED), 3, held=False)),
    ("I10", lambda: broken(in_state(State.FAILED), 3, outcome=Outcome.LOST, held=False)),
    ("I11", lambda: [*keyed_life(1).stream, *keyed_life(2).stream]),
    ("I11", lambda: [*keyed_life(1).lease(1).fail(2).stream, *keyed_life(2).stream]),
    ("I18", lambda: broken(group_life(), 2, due_at=at(61))),
    ("I20", lambda: without(effect_life(), 3)),
    ("I20", lambda: without(effect_life(), 4)),
    ("I20", lambda: without(effect_life(), 5)),
    ("I20", lambda: without(effect_life(), 3, 4, 5)),
    ("I20", lambda: broken(effect_life(), 6, destination="mail")),
    ("I20", lambda: broken(effect_life(), 6, effect=EffectKind.MUTATION)),
    ("I20", lambda: broken(effect_life(), 4, key="other")),
    ("I20", lambda: broken(uncertain_life(), 4, outcome=Outcome.REJECTED)),
    ("I20", lambda: leased_again(uncertain_life())),
    ("I18", lambda: broken(group_life(), 2, item_ids=(2, 1))),
    ("I18", lambda: broken(group_life(), 2, item_ids=(1,))),
    ("I18", lambda: broken(group_life(), 3, item_ids=(2,))),
    ("I18", lambda: broken(group_life(), 3, **four_items())),
    ("I18", lambda: broken(group_life(), 2, arrived=(at(-1), at(-1)))),
    ("I18", lambda: [*group_life().stream, *another_job(group_life())]),
    ("I19", lambda: of_a_type_that_aborts(Life().enqueue().lease(1).expire(2).lease(3))),
    ("I19", lambda: of_a_type_that_aborts(Life().enqueue().lease(1).release(2, SHUTDOWN))),
    ("I19", lambda: broken(in_state(State.FAILED), 3, outcome=Outcome.ABORTED, held=False)),
]


def after(earlier: Life) -> Log:
    """The next job of the key starts at second 5, wherever the earlier one stands."""
    return [*earlier.stream, *ordered_life(2).lease(5).stream]


def done_twice() -> Log:
    log = in_state(State.DONE).stream
    return [*log, replace(log[-1], version=4)]


def with_retries(life: Life, retries: int) -> Log:
    return with_policy(life, Policy(retries=retries))


def of_a_type_that_aborts(life: Life) -> Log:
    return with_policy(life, Policy(on_expired=OnExpired.ABORT))


def with_policy(life: Life, policy: Policy) -> Log:
    birth = life.stream[0].event
    assert isinstance(birth, events.Enqueued)
    return broken(life, 1, spec=replace(birth.spec, policy=policy))


def four_items() -> dict[str, object]:
    ids = (3, 4)
    return {"items": ("3", "4"), "item_ids": ids, "arrived": (at(5), at(5))}


def another_job(life: Life) -> Log:
    birth = life.stream[0].event
    assert isinstance(birth, events.Enqueued)
    log = broken(life, 1, spec=replace(birth.spec, id=job_id(2)))
    return [replace(recorded, job_id=job_id(2)) for recorded in log]


@pytest.mark.parametrize(
    ("invariant", "plant"), PLANTED, ids=[f"{n}-{name}" for n, (name, _) in enumerate(PLANTED)]
)
def test_a_planted_violation_is_found(invariant: str, plant: Callable[[], Log]) -> None:
    log = plant()
    caught = [each for each in check(log) if each.invariant == invariant]
    assert caught
    assert all(1 <= len(each.events) <= 2 for each in caught), "the evidence is small"
    assert all(each.events[-1] in log for each in caught)


def test_a_stream_that_is_one_event_short_accuses_only_the_gap() -> None:
    """The lease tokens that follow are numbered by the log, so they are not accused in a row."""
    log = full_life().stream[:2] + full_life().stream[3:]
    assert [str(each) for each in check(log)] == [
        f"I1 broken by job {job_id(1)} (version 2, 4): version 4 stands where 3 belongs"
    ]


def rows_of(*all_lives: Life) -> dict[UUID, KeptRow]:
    rows: dict[UUID, KeptRow] = {}
    for life in all_lives:
        row = to_row(life.now)
        if row is not None:
            rows[life.now.id] = KeptRow(life.stream[0].event_id, row)
    return rows


def three() -> tuple[Life, Life, Life]:
    """A waiting, a held and a finished job of one log."""
    event_ids = count(100)
    made = tuple(Life(event_ids) for _ in range(3))
    for number, life in enumerate(made, 1):
        life.do(Enqueue(at(0), spec(number, retries=0)))
    waiting, held, finished = made
    held.lease(1).fail(2)
    finished.lease(1).complete(2)
    return waiting, held, finished


@pytest.mark.acceptance("Q10")
def test_rows_that_are_the_fold_of_their_streams() -> None:
    waiting, held, finished = three()
    log = [*waiting.stream, *held.stream, *finished.stream]
    assert list(check(log, rows_of(waiting, held))) == []
    assert fold(each.event for each in held.stream) == held.job


def changed_row(kept: KeptRow, **changed: Any) -> KeptRow:
    spec_row, state_row = kept.row
    mine = {name: value for name, value in changed.items() if name in spec_row._fields}
    rest = {name: value for name, value in changed.items() if name not in mine}
    return KeptRow(kept.seq, (spec_row._replace(**mine), state_row._replace(**rest)))


Rows = dict[UUID, KeptRow]
SPOILT: list[tuple[str, Callable[[Rows], object], str]] = [
    ("no row", lambda rows: rows.pop(job_id(1)), "it is queued and has no row"),
    ("held", lambda rows: rows.pop(job_id(2)), "it is failed and has no row"),
    (
        "finished",
        lambda rows: rows.update({job_id(3): rows[job_id(1)]}),
        "it is done and not held, yet it has a row",
    ),
    (
        "stray",
        lambda rows: rows.update({job_id(9): rows[job_id(1)]}),
        "it has a row and no stream",
    ),
    (
        "seq",
        lambda rows: rows.update({job_id(1): rows[job_id(1)]._replace(seq=5)}),
        "seq is 5, by its birth 100",
    ),
    (
        "state",
        lambda rows: rows.update({job_id(1): changed_row(rows[job_id(1)], attempts=1)}),
        "attempts is 1, by the log 0",
    ),
    (
        "args",
        lambda rows: rows.update({job_id(1): changed_row(rows[job_id(1)], args='"secret"')}),
        "args differ from the log",
    ),
]


@pytest.mark.parametrize(
    ("spoil", "text"), [each[1:] for each in SPOILT], ids=[each[0] for each in SPOILT]
)
def test_a_row_that_is_not_the_fold(spoil: Callable[[Rows], object], text: str) -> None:
    waiting, held, finished = three()
    rows = rows_of(waiting, held)
    spoil(rows)
    log = [*waiting.stream, *held.stream, *finished.stream]
    violations: list[Violation] = list(check(log, rows))
    assert [(each.invariant, each.text) for each in violations] == [("I13", text)]


def test_every_invariant_has_a_sentence_and_a_planted_violation() -> None:
    assert set(INVARIANTS) == {name for name, _ in PLANTED} | {"I13"}
    assert all(sentence.endswith(".") for sentence in INVARIANTS.values())
    assert GROUP.max_size == 3, "the planted group violations count on it"
