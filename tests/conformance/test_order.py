"""Jobs of one ordering key run in the order of their acceptance, and jobs after others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from leasebook.domain.errors import InvalidValue
from leasebook.domain.job import Group, Job, Policy
from leasebook.domain.ordering import KEYS_MAX
from leasebook.domain.states import State
from leasebook.domain.values import OnHold, Outcome
from leasebook.infra.caller_ports import Order
from leasebook.infra.ports import Store
from leasebook.infra.worker.answers import Answer, Broke, Report, Succeeded
from leasebook.infra.worker.order import free_stranded
from leasebook.infra.worker.settings import WorkerSettings
from leasebook.infra.worker.tick import Ask, Ticked, Ticker

from .ground import Ground
from .making import claimed, ids, item_spec, job_id, new_spec, now, wanted, worker

pytestmark = pytest.mark.acceptance("Q14")

SERIAL = Group(window=0, max_hold=0, max_size=2, serial=True)
NEW_IDS = count(900)


class Hand:
    """A worker whose runs end when the test says so."""

    def __init__(self, ground: Ground, name: str = "w1", slots: int = 10) -> None:
        self.store = ground.store()
        self.store.enroll(worker(name))
        self.ticker = Ticker(
            self.store, name, ("default",), ("work", "fold"), WorkerSettings(),
            lambda: job_id(next(NEW_IDS)),
        )  # fmt: skip
        self.slots = slots
        self.running: dict[UUID, Job] = {}

    def tick(self, *reports: Report) -> Ticked:
        for each in reports:
            del self.running[each.job.id]
        ask = Ask(reports, tuple(self.running.values()), self.slots - len(self.running), True, True)
        ticked = self.ticker.tick(ask)
        self.running |= {job.id: job for job in ticked.leased}
        return ticked

    def starts(self) -> list[UUID]:
        """One tick; which jobs began."""
        return [job.id for job in self.tick().leased]

    def end(self, number: int, answer: Answer | None = None) -> list[UUID]:
        """End one run; which jobs began in the same tick."""
        job = self.running[job_id(number)]
        return [each.id for each in self.tick(Report(job, answer or Succeeded())).leased]


@pytest.fixture
def hand(ground: Ground) -> Hand:
    return Hand(ground)


def keyed(number: int, key: str = "k", **fields: Any) -> Order:
    return Order(new_spec(number, ordering_key=key, **fields))


def accept(ground: Ground, orders: Sequence[Order]) -> None:
    with ground.caller() as caller:
        caller(orders)


def states(ground: Ground) -> dict[UUID, str]:
    return {job: kept.row[1].state for job, kept in ground.rows().items()}


def blocked(ground: Ground) -> dict[UUID, UUID | None]:
    return {job: kept.row[1].blocked_by for job, kept in ground.rows().items()}


@pytest.mark.parametrize("together", [True, False])
def test_one_at_a_time_in_order_beside_other_keys(
    ground: Ground, hand: Hand, together: bool
) -> None:
    orders = [keyed(1), keyed(2), keyed(5, "other"), keyed(3), Order(new_spec(4))]
    for part in [orders] if together else [[each] for each in orders]:
        accept(ground, part)
    assert sorted(hand.starts()) == ids(1, 4, 5)
    assert hand.starts() == []
    assert hand.end(1) == ids(2)
    assert hand.end(5) == []
    assert hand.end(2) == ids(3)
    hand.end(3)
    hand.end(4)
    assert ground.rows() == {}


def test_born_in_one_breath_they_are_blocked_from_birth(ground: Ground, hand: Hand) -> None:
    accept(ground, [keyed(1), keyed(2, "other"), keyed(3), keyed(4)])
    assert blocked(ground) == {
        job_id(1): None, job_id(2): None, job_id(3): job_id(1), job_id(4): job_id(3),
    }  # fmt: skip
    assert [kept.has_waiter for _, kept in sorted(ground.rows().items())] == [
        True, False, True, False,
    ]  # fmt: skip


def test_a_job_whose_key_may_be_taken_is_nobody_to_wait_for(ground: Ground) -> None:
    accept(ground, [Order(new_spec(9, unique_key="u"))])
    taken = new_spec(1, ordering_key="k", unique_key="u")
    with ground.caller() as caller:
        caller([Order(taken, on_conflict=Order(taken).on_conflict.KEEP), keyed(2)])
    assert blocked(ground) == {job_id(9): None, job_id(2): None}


def test_a_later_one_waits_for_the_retry_of_an_earlier(ground: Ground, hand: Hand) -> None:
    accept(ground, [keyed(1), keyed(2)])
    assert hand.starts() == ids(1)
    assert hand.end(1, Broke("boom", delay=0.0)) == ids(1)
    assert hand.end(1, Broke("boom", delay=3_600.0)) == []
    assert hand.starts() == []
    assert states(ground) == {job_id(1): State.RETRY_WAIT, job_id(2): State.QUEUED}


def test_a_later_one_waits_for_a_start_in_the_future(ground: Ground, hand: Hand) -> None:
    with ground.caller() as caller:
        caller([Order(new_spec(1, ordering_key="k"), delay=3_600.0)])
    accept(ground, [keyed(2)])
    assert hand.starts() == []
    assert blocked(ground)[job_id(2)] == job_id(1)


@pytest.mark.parametrize("on_hold", list(OnHold))
def test_a_held_job_blocks_its_own_key_unless_its_type_says_skip(
    ground: Ground, hand: Hand, on_hold: OnHold
) -> None:
    accept(ground, [keyed(1, on_hold=on_hold), keyed(2), keyed(3, "other")])
    assert hand.starts() == ids(1, 3)
    began = hand.end(1, Broke("boom", 0.0, retry=False))
    assert states(ground)[job_id(1)] == State.FAILED
    assert began == (ids(2) if on_hold is OnHold.SKIP else [])
    accept(ground, [keyed(4)])
    assert hand.starts() == []
    assert blocked(ground)[job_id(4)] == job_id(2)


def test_a_job_of_the_key_that_runs_elsewhere_is_waited_for(ground: Ground, hand: Hand) -> None:
    accept(ground, [keyed(1)])
    assert hand.starts() == ids(1)
    accept(ground, [keyed(2)])
    second = Hand(ground, "w2")
    assert second.starts() == []
    assert hand.end(1) == ids(2)
    assert second.starts() == []


def test_a_producer_that_has_not_ended_keeps_its_key(ground: Ground, hand: Hand) -> None:
    """It may have drawn a lower number, and commit it later."""
    with ground.caller() as early:
        early([keyed(1)])
        accept(ground, [keyed(2), keyed(3, "other")])
        assert hand.starts() == ids(3)
    hand.ticker.keys = type(hand.ticker.keys)()  # What it had to pass over is tried again at once.
    assert hand.starts() == ids(1)
    assert hand.end(1) == ids(2)


def test_a_key_that_is_never_quiet_is_settled_up_to_a_number(ground: Ground, hand: Hand) -> None:
    accept(ground, [keyed(1)])
    newest = hand.store.settle_key("k", 0.2)
    assert newest is not None
    with ground.caller() as late:
        late([keyed(2)])
        assert hand.store.settle_key("k", 0.05) is None
        assert hand.starts() == []
        hand.ticker.keys.waited("k", newest, now(hand.store))
        hand.ticker.keys.served(["k"])
        assert hand.starts() == ids(1)


def test_who_is_blocked_in_the_middle_may_leave(ground: Ground, hand: Hand) -> None:
    accept(ground, [keyed(1), keyed(2, expires_at=None), keyed(3)])
    with hand.store.transaction() as tx:
        assert claimed(hand.store, wanted()) == ids(1)
        assert [job.id for job in tx.load(ids(2)).values()] == ids(2)
    assert hand.starts() == ids(1)
    assert hand.end(1) == ids(2)
    assert hand.end(2) == ids(3)


@pytest.mark.parametrize(
    ("answer", "state", "began"),
    [
        (Succeeded(), None, ids(2)),
        (Broke("boom", 0.0, retry=False), State.FAILED, []),
    ],
    ids=["succeeds", "fails"],
)
def test_a_job_after_another(
    ground: Ground, hand: Hand, answer: Answer, state: State | None, began: list[UUID]
) -> None:
    accept(ground, [Order(new_spec(1))])
    accept(ground, [Order(new_spec(2, after=job_id(1)))])
    assert hand.starts() == ids(1)
    assert hand.starts() == []
    assert blocked(ground)[job_id(2)] == job_id(1)
    assert hand.end(1, answer) == began
    hand.starts()
    kept = ground.rows()[job_id(2)].row[1]
    if state is None:
        assert kept.state == State.LEASED
    else:
        assert (kept.state, kept.held, kept.outcome) == (state, True, Outcome.PARENT_FAILED)


def test_a_job_after_one_that_has_ended(ground: Ground, hand: Hand) -> None:
    accept(ground, [Order(new_spec(1)), Order(new_spec(2, policy=Policy(on_exhausted="drop")))])  # type: ignore[arg-type]
    assert hand.starts() == ids(1, 2)
    hand.end(1)
    hand.end(2, Broke("boom", 0.0, retry=False))
    accept(ground, [Order(new_spec(3, after=job_id(1))), Order(new_spec(4, after=job_id(2)))])
    assert hand.starts() == ids(3)
    assert states(ground)[job_id(4)] == State.FAILED


def test_a_job_after_one_that_is_not_there_is_refused(ground: Ground) -> None:
    with ground.caller() as caller:
        with pytest.raises(InvalidValue, match="which is not there") as refused:
            caller([Order(new_spec(1)), Order(new_spec(2, after=job_id(7)))])
        assert refused.value.field == "after"
    assert ground.rows() == {}


def test_groups_of_a_serial_type_run_one_after_another(ground: Ground, hand: Hand) -> None:
    def put(*numbers: int) -> None:
        fields = {"group": SERIAL, "ordering_key": "k"}
        accept(ground, [Order(item_spec(str(number), "k", **fields)) for number in numbers])

    put(1, 2, 3)
    (first,) = hand.tick().leased
    assert first.items == ("1", "2")
    put(4)
    assert hand.tick().leased == ()
    accept(ground, [keyed(50)])
    (second,) = hand.tick(Report(first, Succeeded())).leased
    assert second.items[0] == "3"
    (third,) = hand.tick(Report(second, Succeeded())).leased
    assert [*second.items[1:], *third.items] in (["4"], ["4"])
    if third.items:
        hand.tick(Report(third, Succeeded()))
    assert job_id(50) in hand.running


def test_too_many_keys_at_once_are_refused_before_anything_is_written(ground: Ground) -> None:
    orders = [keyed(number, f"key {number}") for number in range(KEYS_MAX + 1)]
    with ground.caller() as caller:
        with pytest.raises(InvalidValue, match="501 different keys"):
            caller(orders)
        caller(orders[:KEYS_MAX])
    assert len(ground.rows()) == KEYS_MAX


def test_a_backlog_of_one_key_lets_other_keys_through(ground: Ground, hand: Hand) -> None:
    for start in range(0, 300, 30):
        for number in range(start, start + 30):
            accept(ground, [keyed(number)])
    accept(ground, [keyed(500, "other")])
    began: list[UUID] = []
    for _ in range(3):
        began += hand.starts()
    assert began == ids(0, 500)


def test_who_waits_for_nobody_is_freed(ground: Ground, store: Store, hand: Hand) -> None:
    """A blocker that an older release ended, which knows nothing of those who wait."""
    accept(ground, [keyed(1), keyed(2)])
    free_stranded(store)
    assert blocked(ground)[job_id(2)] == job_id(1)


def test_a_job_without_a_key_keeps_what_its_type_says_of_holds(ground: Ground) -> None:
    accept(ground, [Order(new_spec(1, on_hold=OnHold.SKIP))])
    assert ground.rows()[job_id(1)].row[0].on_hold == OnHold.SKIP


def test_a_late_item_of_a_serial_type_closes_the_group_that_keeps_it_out(
    ground: Ground, hand: Hand
) -> None:
    """It was accepted first and committed last: its group comes first, and the open one waits."""
    fields = {"group": SERIAL, "ordering_key": "k"}
    with ground.caller() as early:
        early([Order(item_spec("1", "k", **fields))])
        accept(ground, [Order(item_spec("2", "k", **fields))])
        assert hand.tick().leased == ()
    ran: list[str] = []
    for _ in range(10):
        hand.ticker.keys = type(hand.ticker.keys)()
        for job in (*hand.running.values(), *hand.tick().leased):
            ran += job.items
            hand.tick(Report(job, Succeeded()))
    assert ran == ["1", "2"]
