"""Six states, one table, and an answer to every command in every state."""

from __future__ import annotations

from itertools import product

import pytest

from leasebook.domain.commands import (
    COMMANDS,
    CloseGroup,
    Command,
    Complete,
    CompleteEffect,
    Enqueue,
    ExpireLease,
    Fail,
    JoinItems,
    OpenGroup,
    Release,
    ReleaseEffect,
    Renew,
    Reschedule,
    StartEffect,
    TakeLease,
    Unblock,
)
from leasebook.domain.decide import decide
from leasebook.domain.errors import (
    EffectRefused,
    GroupRefused,
    IllegalTransition,
    LeasebookError,
    StaleLease,
)
from leasebook.domain.events import EVENTS
from leasebook.domain.evolve import evolve
from leasebook.domain.job import Job
from leasebook.domain.states import ENDED, TRANSITIONS, UNFINISHED, WAITING, State
from leasebook.domain.values import EffectKind, ExpiryCause, ReleaseReason
from tests.support.lives import Life, at, group_spec, in_state, item, spec, under

pytestmark = pytest.mark.acceptance("E01")

ALL: tuple[State | None, ...] = (None, *State)


def ask(command: type[Command], life: Life) -> Command:
    """The command as a well-behaved asker would send it, long after everything is due."""
    now, token = at(5_000), 0 if life.job is None else life.token
    commands: tuple[Command, ...] = (
        Enqueue(now, spec()),
        OpenGroup(now, group_spec(), (item(1),)),
        JoinItems(now, (item(2),)),
        CloseGroup(now),
        Reschedule(now, at(9_000)),
        TakeLease(now, "w2"),
        Unblock(now),
        Renew(at(300), token, at(900)),
        Complete(now, token),
        Fail(now, token, "boom"),
        Release(now, token, ReleaseReason.SHUTDOWN),
        ExpireLease(now, token, ExpiryCause.LEASE_ENDED),
        StartEffect(now, token, "post:42", "chat"),
        CompleteEffect(now, token, "plan", "-", EffectKind.SNAPSHOT, "1"),
        ReleaseEffect(now, token, "post:42", "HTTP 404"),
    )
    return next(each for each in commands if type(each) is command)


FENCED = (
    *(Renew, Complete, Fail, Release, ExpireLease),
    *(StartEffect, CompleteEffect, ReleaseEffect),
)

Answer = tuple[str, ...] | type[LeasebookError]
ILLEGAL, STALE, REFUSED = IllegalTransition, StaleLease, GroupRefused

# fmt: off
#                 None       queued     grouped             leased     retry-wait done     failed
ANSWERS: dict[type[Command], tuple[Answer, ...]] = {
    Enqueue:     (("enqueued",), ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL),
    OpenGroup:   (("enqueued", "items_joined"),
                             ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL),
    JoinItems:   (ILLEGAL, REFUSED, ("items_joined",), REFUSED, REFUSED, REFUSED, REFUSED),
    CloseGroup:  (ILLEGAL, ILLEGAL, ("group_closed",), ILLEGAL, ILLEGAL, ILLEGAL, ILLEGAL),
    Reschedule:  (ILLEGAL, ("rescheduled",), ILLEGAL, ILLEGAL, ("rescheduled",), ILLEGAL, ILLEGAL),
    TakeLease:   (ILLEGAL, ("leased",), ("leased",), ILLEGAL, ("leased",), ILLEGAL, ILLEGAL),
    Renew:       (ILLEGAL, STALE, STALE, ("heartbeat",), STALE, STALE, STALE),
    Complete:    (ILLEGAL, STALE, STALE, ("completed",), STALE, STALE, STALE),
    Fail:        (ILLEGAL, STALE, STALE, ("retry_scheduled",), STALE, STALE, STALE),
    Release:     (ILLEGAL, STALE, STALE, ("released",), STALE, STALE, STALE),
    ExpireLease: (ILLEGAL, STALE, STALE, ("lease_expired",), STALE, STALE, STALE),
    Unblock:     (ILLEGAL, (), (), (), (), (), ()),
    StartEffect: (ILLEGAL, STALE, STALE, ("effect_started",), STALE, STALE, STALE),
    CompleteEffect:
                 (ILLEGAL, STALE, STALE, ("effect_completed",), STALE, STALE, STALE),
    ReleaseEffect:
                 (ILLEGAL, STALE, STALE, EffectRefused, STALE, STALE, STALE),
}
# fmt: on


def test_exactly_six_states() -> None:
    assert list(State) == ["queued", "grouped", "leased", "retry-wait", "done", "failed"]
    assert WAITING | ENDED | {State.LEASED} == set(State)
    assert set(State) - ENDED == UNFINISHED


def test_the_tables_are_complete() -> None:
    assert set(ANSWERS) == set(COMMANDS)
    assert all(len(answers) == len(ALL) for answers in ANSWERS.values())
    assert set(TRANSITIONS) == {event.kind for event in EVENTS}


@pytest.mark.parametrize(
    ("state", "command"),
    list(product(ALL, COMMANDS)),
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_every_state_answers_every_command(state: State | None, command: type[Command]) -> None:
    life = in_state(state)
    assert (None if life.job is None else life.job.state) == state
    if state is State.LEASED and command is Renew:
        life = Life().enqueue(timeout=3_600).lease(1)
    before = life.job
    expected = ANSWERS[command][ALL.index(state)]
    if isinstance(expected, tuple):
        assert tuple(event.kind for event in life.do(ask(command, life))) == expected
    else:
        with pytest.raises(LeasebookError) as refused:
            life.do(ask(command, life))
        assert type(refused.value) is expected
        assert life.job is before


def moves_of(job: Job | None, command: Command) -> set[tuple[str, State | None, State]]:
    """Every move that a decision makes; empty when it is refused."""
    try:
        events = decide(job, command)
    except LeasebookError:
        return set()
    made: set[tuple[str, State | None, State]] = set()
    for event in events:
        source = None if job is None else job.state
        job = evolve(job, event)
        made.add((event.kind, source, job.state))
    return made


def test_the_table_is_what_the_decisions_make() -> None:
    """Every state with every command, also where budget, size or expiry make a difference."""
    lives = [in_state(state) for state in ALL]
    lives += [
        Life().enqueue(retries=0).lease(1),
        Life().enqueue(expires_at=at(100)),
        Life().open_group(expires_at=at(100)),
        Life().open_group(item(1), item(2)),
        Life().enqueue(timeout=3_600).lease(1),
        Life().enqueue().block(1),
        Life().enqueue().lease(1).fail(2).block(100),
        Life().enqueue().orphan(1),
        Life().enqueue().lease(1).begin(2),
    ]
    made = {
        move
        for life, command in product(lives, COMMANDS)
        for move in moves_of(life.job, ask(command, life))
    }
    table = {(kind, *move) for kind, moves in TRANSITIONS.items() for move in moves}
    assert made == table


def test_a_worker_with_another_token_changes_nothing_in_any_state() -> None:
    for state, command in product(State, FENCED):
        life = in_state(state)
        stale = under(ask(command, life), 99)
        with pytest.raises(StaleLease) as refused:
            life.do(stale)
        assert refused.value.token == 99
        assert "Discard this result." in str(refused.value)
