"""What is written is what is read, also by the releases to come."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from pathlib import Path
from uuid import UUID

import pytest
from attrs import evolve as replace
from hypothesis import given
from hypothesis import strategies as st

from leasebook.domain import DamagedEvent, UnknownEvent
from leasebook.domain import events as e
from leasebook.domain.events import EVENTS, Event
from leasebook.domain.job import Group, JobSpec, Policy
from leasebook.domain.values import (
    CloseReason,
    EffectKind,
    ExpiryCause,
    OnExhausted,
    OnExpired,
    OnHold,
    Outcome,
    ReleaseReason,
)
from leasebook.infra.codec import KINDS, EventRow, decode, encode
from leasebook.infra.documents import dumps
from tests.codec.samples import AT, JOB, SAMPLES

GOLDEN = Path(__file__).parent / "golden"

zones = st.sampled_from([UTC, timezone(timedelta(hours=10, minutes=30))])
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=zones)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "Infinity" not in json.dumps(value))
jsons = documents.map(dumps)
tokens = st.integers(1, 2**62)
seconds = st.floats(0, 1e9)
maybe = st.none() | texts
ids = st.uuids()
kinds = st.sampled_from(EffectKind)


@st.composite
def births(draw: st.DrawFn) -> Event:
    at = draw(times)
    policy = st.builds(
        Policy,
        st.integers(0, 9),
        seconds,
        seconds,
        st.sampled_from(OnExhausted),
        st.sampled_from(OnExpired),
    )
    group = draw(st.none() | st.builds(Group, seconds, seconds, st.integers(1, 1_000)))
    ordering_key = draw(maybe)
    if group is not None:
        group = replace(group, serial=ordering_key is not None)
    spec = JobSpec(
        JOB,
        draw(texts),
        draw(jsons),
        at,
        draw(texts),
        draw(st.integers(0, 9)),
        draw(policy),
        draw(maybe),
        draw(maybe),
        draw(maybe),
        draw(st.none() | times),
        draw(maybe),
        group,
        draw(st.none() | times),
        draw(maybe),
        ordering_key,
        draw(st.sampled_from(OnHold)),
        draw(st.none() | ids),
        draw(st.none() | tokens),
    )
    return e.Enqueued(at, spec, draw(times), draw(st.none() | ids))


@st.composite
def joins(draw: st.DrawFn) -> Event:
    joined = draw(st.lists(st.tuples(jsons, tokens, times), min_size=1, max_size=4))
    items, ids, arrived = zip(*joined, strict=True)
    return e.ItemsJoined(draw(times), items, ids, arrived, draw(times))


events = st.one_of(
    births(),
    joins(),
    st.builds(e.GroupClosed, times, st.sampled_from(CloseReason), times),
    st.builds(e.Rescheduled, times, times),
    st.builds(e.Blocked, times, ids),
    st.builds(e.Unblocked, times, times),
    st.builds(e.EffectStarted, times, tokens, texts, texts, kinds),
    st.builds(e.EffectCompleted, times, tokens, texts, texts, kinds, jsons),
    st.builds(e.EffectReleased, times, tokens, texts, texts),
    st.builds(e.Leased, times, texts, times, tokens),
    st.builds(e.Heartbeat, times, tokens, times),
    st.builds(e.Released, times, tokens, st.sampled_from(ReleaseReason), times, maybe),
    st.builds(e.RetryScheduled, times, tokens, texts, times),
    st.builds(e.LeaseExpired, times, tokens, st.sampled_from(ExpiryCause), times),
    st.builds(e.Completed, times, tokens, jsons, st.sampled_from(Outcome)),
    st.builds(
        e.Failed,
        times,
        st.none() | tokens,
        st.sampled_from(Outcome),
        st.booleans(),
        texts,
        st.none() | st.sampled_from(ExpiryCause),
    ),
)


@given(events)
def test_every_event_comes_back_as_it_was_written(event: Event) -> None:
    row = encode(event)
    assert decode(JOB, row) == event
    if row.data is not None:
        json.loads(row.data, parse_constant=pytest.fail)


def as_row(golden: dict[str, object]) -> EventRow:
    """The row of a golden file: its document as an object, its times as ISO texts."""

    def time(name: str) -> datetime | None:
        value = golden[name]
        return datetime.fromisoformat(value) if isinstance(value, str) else None

    lease, worker, data = golden["lease"], golden["worker"], golden["data"]
    assert lease is None or isinstance(lease, int)
    assert worker is None or isinstance(worker, str)
    at = time("at")
    assert at is not None
    document = None if data is None else dumps(data)
    return EventRow(str(golden["kind"]), at, time("due_at"), lease, worker, document)


def golden_rows(kind: str) -> list[EventRow]:
    return [as_row(each) for each in json.loads((GOLDEN / f"{kind}.json").read_text("utf-8"))]


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_rows_that_were_ever_written_keep_their_meaning(kind: str) -> None:
    rows = golden_rows(kind)
    assert tuple(decode(JOB, row) for row in rows) == SAMPLES[kind]
    assert {row.kind for row in rows} == {kind}


@pytest.mark.parametrize("kind", sorted(KINDS.values()))
def test_today_the_same_rows_are_written(kind: str) -> None:
    assert [encode(event) for event in SAMPLES[kind]] == golden_rows(kind)


def test_every_kind_and_version_has_its_golden_file_and_sample() -> None:
    files = {path.stem for path in GOLDEN.glob("*.json")}
    assert files == set(SAMPLES)
    assert set(KINDS.values()) <= files
    assert set(KINDS) == {event.kind for event in EVENTS}


@pytest.mark.parametrize(
    "words",
    [CloseReason, ExpiryCause, OnExhausted, Outcome, ReleaseReason],
    ids=lambda e: e.__name__,
)
def test_every_word_that_an_event_may_hold_stands_in_a_golden_file(words: type[StrEnum]) -> None:
    told = "".join(path.read_text("utf-8") for path in GOLDEN.glob("*.json"))
    assert [word for word in words if f'"{word}"' not in told] == []


@pytest.mark.parametrize("kind", ["leased.v2", "leased", "paused.v1", ""])
def test_an_unknown_kind_names_itself_and_the_way_out(kind: str) -> None:
    with pytest.raises(UnknownEvent, match="Install the release that wrote it") as refused:
        decode(JOB, EventRow(kind, AT, None, None, None, None))
    assert refused.value.kind == kind
    assert refused.value.code == "unknown_event"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [float("nan")]])
def test_what_is_no_json_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps(value)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("leased.v1", None),
        ("leased.v1", "{}"),
        ("completed.v1", "[]"),
        ("failed.v1", '{"outcome":"odd","held":true,"error":""}'),
        ("enqueued.v1", "{}"),
        ("released.v1", "no JSON"),
    ],
)
def test_an_event_that_was_written_past_leasebook_is_named(kind: str, data: str | None) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(DamagedEvent, match=f"{kind} of job {UUID(int=7)} cannot be read"):
        decode(UUID(int=7), EventRow(kind, at, None, None, None, data))
