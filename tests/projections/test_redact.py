"""Nothing of a log leaves that is not meant to, and what belongs together still does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import attrs
import pytest

from leasebook.domain.events import EVENTS
from leasebook.domain.job import JobSpec
from leasebook.projections.redact import AUDIT, HIDEABLE, Redaction
from leasebook.projections.replay.facts import KINDS, AuditLine, gather
from leasebook.projections.replay.faults import fingerprint
from tests.codec.samples import SAMPLES
from tests.support.facts import refused, started
from tests.support.lives import Life, at

KEY = b"k" * 32
SECRET = "hunter2 ada@example.com"

#: Every member of an event or a spec, thought of once: one that is new here needs a decision.
THOUGHT_OF = {
    "Enqueued": "at spec due_at blocked_by",
    "ItemsJoined": "at items item_ids arrived due_at",
    "GroupClosed": "at reason due_at",
    "Rescheduled": "at due_at",
    "Blocked": "at by",
    "Unblocked": "at due_at",
    "Leased": "at worker lease_until start",
    "Heartbeat": "at lease lease_until",
    "EffectStarted": "at lease key destination effect",
    "EffectCompleted": "at lease key destination effect receipt",
    "EffectReleased": "at lease key reason",
    "Released": "at lease reason due_at note",
    "RetryScheduled": "at lease error due_at",
    "LeaseExpired": "at lease cause due_at",
    "Completed": "at lease result outcome",
    "Failed": "at lease outcome held error cause",
    "JobSpec": "id name args enqueued_at queue priority policy label owner subject expires_at "
    "group_key group hold_until unique_key ordering_key on_hold after sequence",
}
#: Texts that leave as they are.
OPEN = {"at", "id", "name", "queue", "worker", "policy", "cause", "outcome", "effect", "on_hold"}


@pytest.fixture
def redaction() -> Redaction:
    return Redaction(KEY)


@pytest.mark.parametrize("kind", [*EVENTS, JobSpec], ids=lambda kind: kind.__name__)
def test_every_member_was_thought_of(kind: type[Any]) -> None:
    names = " ".join(field.name for field in attrs.fields(kind))
    assert names == THOUGHT_OF[kind.__name__], "may it leave? then teach projections/redact.py"


def texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text inside an event, with the member that it is under."""
    if isinstance(value, str):
        yield path, value
    elif attrs.has(type(value)):
        for name in attrs.asdict(cast(Any, value), recurse=False):
            yield from texts(getattr(value, name), name)
    elif isinstance(value, tuple):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from texts(each, path)  # pyright: ignore[reportUnknownArgumentType]


def poisoned(value: Any) -> Any:
    """An event whose every free text holds the secret, also inside documents."""
    changes: dict[str, Any] = {}
    for field in attrs.fields(value.__class__):
        here = getattr(value, field.name)
        if field.name in ("args", "result", "receipt"):
            changes[field.name] = json.dumps({SECRET: [SECRET, 42, True, None]})
        elif field.name == "items":
            changes[field.name] = tuple(json.dumps([SECRET]) for _ in here)
        elif field.name == "spec":
            changes[field.name] = poisoned(here)
        elif type(here) is str and field.name not in OPEN:
            changes[field.name] = f"ValueError: {SECRET}"
    return attrs.evolve(value, **changes)


@pytest.mark.acceptance("E10")
@pytest.mark.parametrize("name", SAMPLES)
def test_no_value_leaves(redaction: Redaction, name: str) -> None:
    for event in map(poisoned, SAMPLES[name]):
        hidden = redaction.event(event)
        for member, text in texts(hidden):
            for word in (*SECRET.split(), "42", "true"):
                assert word not in text, member
        assert (hidden.kind, hidden.at) == (event.kind, event.at)


@pytest.mark.acceptance("E10")
def test_equal_texts_have_equal_pseudonyms_under_one_key_only(redaction: Redaction) -> None:
    assert redaction.pseudonym("a.md") == Redaction(KEY).pseudonym("a.md")
    assert redaction.pseudonym("a.md") != redaction.pseudonym("b.md")
    assert redaction.pseudonym("a.md") != Redaction(b"other").pseudonym("a.md")
    assert "a.md" not in repr(redaction)
    assert str(KEY) not in repr(redaction)


def test_shapes_stay(redaction: Redaction) -> None:
    shape = json.loads(redaction.shape('{"a":[1,2.5,"x",true,null,{"b":[]}]}'))
    assert list(shape.values()) == [[0, 0.0, "", False, None, {redaction.pseudonym("b"): []}]]


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("KeyError: 'x' in row 7", "KeyError: 'y' in row 9", "KeyError"),
        ("httpx.ReadTimeout: after 5 s", "httpx.ReadTimeout: after 10 s", "httpx.ReadTimeout"),
        ("no such page 7", "no such page 8", None),
    ],
)
def test_errors_of_one_kind_stay_one_kind(
    redaction: Redaction, one: str, other: str, kind: str | None
) -> None:
    told = redaction.error(one)
    assert told == redaction.error(other) == fingerprint(told), "a pseudonym is no number"
    assert told.startswith(f"{kind}: ~" if kind else "~")


def test_names_queues_and_workers_are_hidden_when_asked() -> None:
    redaction = Redaction(KEY, frozenset(HIDEABLE))
    stream = Life().enqueue(queue="mail").lease(1, "ada#1").stream
    for recorded in map(redaction.recorded, stream):
        for word in ("mail", "sync_page", "ada"):
            assert word not in str(recorded)
    assert redaction.worker("ada#1") == f"{redaction.worker('ada')}#1"


def test_audit_lines_keep_what_a_replay_reads(redaction: Redaction) -> None:
    lines = [started(0, capacity=3, queues=("mail",)), refused(1, 1, 2)]
    assert gather(map(redaction.line, lines)) == gather(lines)
    assert set(AUDIT) <= set(KINDS)
    strange = AuditLine(at(0), "operator_said", {"why": SECRET})
    assert redaction.line(strange).detail == {}
