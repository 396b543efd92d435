"""The block of an effect: what it asks to have written, and when it is interrupted."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from contextlib import suppress

import pytest
from attrs import evolve as replace

from leasebook import EffectRefused, EffectUnfinished, Rejected, Run
from leasebook.domain import Job, change
from leasebook.domain.commands import CompleteEffect, ReleaseEffect, StartEffect
from leasebook.domain.errors import InvalidValue, LeasebookError, StaleLease
from leasebook.infra.app.errors import ResultRefused
from leasebook.infra.app.writing import EffectCommand
from tests.support.lives import Life, at

KEY, TO = "post:42", "chat"


class Hand:
    """A writer whose answers the test gives, or that answers at once."""

    def __init__(self, job: Job, *, at_once: bool = True) -> None:
        self.job = job
        self.at_once = at_once
        self.asked: list[tuple[EffectCommand, Future[Job]]] = []

    def submit(self, job: Job, command: EffectCommand) -> Future[Job]:
        self.asked.append((command, Future()))
        if self.at_once:
            self.answer()
        return self.asked[-1][1]

    def wait(self, written: Future[Job]) -> Job:
        return written.result(30)

    def answer(self) -> None:
        """Settle the newest, as a tick does."""
        command, written = self.asked[-1]
        if not written.running():
            written.set_running_or_notify_cancel()
        try:
            self.job = change(self.job, replace(command, at=at(5))).after
        except LeasebookError as error:
            written.set_exception(error)
        else:
            written.set_result(self.job)

    @property
    def kinds(self) -> list[type[EffectCommand]]:
        return [type(command) for command, _ in self.asked]


def leased() -> Job:
    return Life().enqueue().lease(1).now


def done_before() -> Job:
    """It was done by the run before."""
    return Life().enqueue().lease(1).begin(2, KEY, TO).effect(3, KEY, TO).fail(4).lease(70).now


def test_a_block_in_a_thread_asks_for_its_begin_and_its_end() -> None:
    hand = Hand(leased())
    run = Run(hand.job, hand)
    with run.effect(KEY, to=TO) as effect:
        assert (effect.done, effect.receipt) == (False, None)
        effect.complete({"ts": 1})
        assert hand.kinds == [StartEffect]
    assert (effect.done, effect.receipt) == (True, {"ts": 1})
    assert hand.kinds == [StartEffect, CompleteEffect]
    assert run.in_progress == set()


async def test_what_was_done_is_told_and_not_asked_again() -> None:
    hand = Hand(done_before())
    async with Run(hand.job, hand).effect(KEY, to=TO) as effect:
        assert (effect.done, effect.receipt) == (True, {"ts": 1})
        effect.complete("something else")
        with pytest.raises(EffectRefused, match="it is done"):
            effect.release("not at all")
    assert effect.receipt == {"ts": 1}
    assert hand.kinds == [StartEffect]


async def test_an_end_is_told_once_and_inside_of_the_block() -> None:
    hand = Hand(leased())
    effect = Run(hand.job, hand).effect(KEY, to=TO)
    with pytest.raises(EffectRefused, match="Call complete inside of its block"):
        effect.complete()
    async with effect:
        effect.release("it was locked, password=hunter2hunter2")
        with pytest.raises(EffectRefused, match="its end was told before"):
            effect.complete()
        with pytest.raises(EffectRefused, match="its end was told before"):
            effect.release("again")
    [_, (released, _)] = hand.asked
    assert isinstance(released, ReleaseEffect)
    assert released.reason == "it was locked, password=***"
    assert not effect.done


async def raising(run: Run, error: BaseException | None) -> None:
    async with run.effect(KEY, to=TO):
        if error is not None:
            raise error


@pytest.mark.acceptance("Q11")
async def test_only_a_definite_rejection_asks_for_a_release() -> None:
    for error, kinds in (
        (Rejected("no"), [StartEffect, ReleaseEffect]),
        (ValueError("no"), [StartEffect]),
        (asyncio.CancelledError(), [StartEffect]),
    ):
        hand = Hand(leased())
        with pytest.raises(type(error)):
            await raising(Run(hand.job, hand), error)
        assert hand.kinds == kinds
    hand = Hand(leased())
    with pytest.raises(EffectUnfinished):
        await raising(Run(hand.job, hand), None)
    assert hand.kinds == [StartEffect]


async def test_a_receipt_that_cannot_be_kept_does_not_make_it_undone() -> None:
    hand = Hand(leased())

    async def bad() -> None:
        async with Run(hand.job, hand).effect(KEY, to=TO) as effect:
            effect.complete("x" * 70_000)

    with pytest.raises(ResultRefused, match="receipt: more than 65,536 bytes"):
        await bad()
    [_, (done, _)] = hand.asked
    assert isinstance(done, CompleteEffect)
    assert json.loads(done.receipt) is None


async def enter(run: Run) -> None:
    async with run.effect(KEY, to=TO) as effect:
        effect.complete()


async def interrupted(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.acceptance("Q11")
async def test_a_begin_that_waits_is_withdrawn_when_its_handler_is_cancelled() -> None:
    hand = Hand(leased(), at_once=False)
    task = asyncio.create_task(enter(Run(hand.job, hand)))
    await asyncio.sleep(0)
    await interrupted(task)
    [(_, written)] = hand.asked
    assert written.cancelled()


@pytest.mark.acceptance("Q11")
async def test_a_begin_that_is_on_its_way_is_taken_back() -> None:
    hand = Hand(leased(), at_once=False)
    task = asyncio.create_task(enter(Run(hand.job, hand)))
    await asyncio.sleep(0)
    hand.asked[0][1].set_running_or_notify_cancel()
    await interrupted(task)
    assert hand.kinds == [StartEffect]
    hand.answer()
    assert hand.kinds == [StartEffect, ReleaseEffect]
    hand.answer()
    assert hand.job.effects == ()


class Stopped(BaseException):
    """As a signal raises it."""


@pytest.mark.acceptance("Q11")
def test_a_wait_that_a_signal_interrupts_takes_its_begin_back_first() -> None:
    class Interrupted(Hand):
        signals = 1

        def wait(self, written: Future[Job]) -> Job:
            if self.signals:
                self.signals -= 1
                raise Stopped
            return super().wait(written)

    hand = Interrupted(leased())
    with pytest.raises(Stopped), Run(hand.job, hand).effect(KEY, to=TO):
        pass
    assert hand.kinds == [StartEffect, ReleaseEffect]
    assert hand.job.effects == ()


async def test_a_begin_that_was_refused_takes_nothing_back() -> None:
    hand = Hand(Life().enqueue().lease(1).fail(2).lease(70).now, at_once=False)
    run = Run(leased(), hand)
    task = asyncio.create_task(enter(run))
    await asyncio.sleep(0)
    hand.answer()
    with pytest.raises(StaleLease):
        await task
    assert hand.kinds == [StartEffect]
    assert run.in_progress == set()


async def test_the_word_of_a_handler_stands_when_it_is_cancelled_at_the_end() -> None:
    hand = Hand(leased(), at_once=False)
    task = asyncio.create_task(enter(Run(hand.job, hand)))
    await asyncio.sleep(0)
    hand.answer()
    while len(hand.asked) < 2:
        await asyncio.sleep(0)
    await interrupted(task)
    assert hand.kinds == [StartEffect, CompleteEffect]
    hand.answer()
    assert [each.receipt for each in hand.job.effects] == ["null"]


async def test_what_cannot_be_an_effect_is_never_asked_for() -> None:
    hand = Hand(leased())
    run = Run(hand.job, hand)
    for key, to in (("", TO), ("x" * 241, TO), (KEY, ""), (KEY, "x" * 513), ("\0", TO)):
        with pytest.raises(InvalidValue):
            await raising_at(run, key, to)
    with pytest.raises(EffectRefused, match="Write `async with`"), run.effect(KEY, to=TO):
        pass
    assert hand.asked == []


async def raising_at(run: Run, key: str, to: str) -> None:
    async with run.effect(key, to=to):
        raise AssertionError("it was entered")


async def test_a_destination_shows_no_password() -> None:
    hand = Hand(leased())
    async with Run(hand.job, hand).effect(KEY, to="https://u:hunter2@host/x?token=abc") as effect:
        effect.complete()
    assert effect.destination == "https://u:***@host/x?token=***"
    assert all("hunter2" not in repr(asked) for asked in hand.asked)
