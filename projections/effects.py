"""What must hold for the effects of a stream: I20, judged without ``decide``, which wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..domain.events import (
    Completed,
    EffectCompleted,
    EffectReleased,
    EffectStarted,
    Event,
    Failed,
    Leased,
    LeaseExpired,
    Released,
    RetryScheduled,
)
from ..domain.job import Effect
from ..domain.log import Recorded
from ..domain.values import EffectKind, Outcome
from .streams import Finding, Step


def receipts(life: Sequence[Step]) -> Iterator[Finding]:
    """I20: begun once, ended after its begin; a run with one in progress ends as uncertain."""
    begun: dict[str, Recorded] = {}
    for step in life:
        here, event = step.recorded, step.recorded.event
        job = step.before
        known = {} if job is None else {each.key: each for each in job.effects}
        text = _of_effect(event, known)
        if text is not None and isinstance(event, EffectStarted | EffectCompleted | EffectReleased):
            yield f"effect {event.key} {text}", _shown(begun, event.key, here)
        if isinstance(event, EffectStarted):
            begun[event.key] = here
        uncertain = None if job is None else job.uncertain
        if uncertain is not None and _goes_on(event):
            text = f"{event.kind} came while effect {uncertain.key} was in progress"
            yield text, _shown(begun, uncertain.key, here)


def _of_effect(event: Event, known: dict[str, Effect]) -> str | None:
    """What is wrong with an event of an effect, None when nothing is."""
    match event:
        case EffectStarted():
            return None if event.key not in known else "was begun a second time"
        case EffectReleased():
            effect = known.get(event.key)
            begun = effect is not None and effect.receipt is None
            return None if begun else "was released, it was not in progress"
        case EffectCompleted():
            effect = known.get(event.key)
            if effect is None:
                called = event.effect is EffectKind.CALL
                return "was completed, it was never begun" if called else None
            if effect.receipt is not None:
                return "was completed a second time"
            if (effect.destination, effect.kind) != (event.destination, event.effect):
                return "was completed for another destination, or as another kind"
            return None
        case _:
            return None


def _goes_on(event: Event) -> bool:
    """Whether this would leave an effect in progress behind, or repeat it."""
    if isinstance(event, Failed):
        return event.outcome is not Outcome.UNCERTAIN
    return isinstance(event, Leased | LeaseExpired | Released | RetryScheduled | Completed)


def _shown(begun: dict[str, Recorded], key: str, here: Recorded) -> tuple[Recorded, ...]:
    return (begun[key], here) if key in begun else (here,)
