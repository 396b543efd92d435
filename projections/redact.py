"""What of a log may leave the house.  Nothing that is not named here does.

Times, states, counts and ids of jobs stay.  Keys, subjects and the like become pseudonyms: equal
texts have equal pseudonyms as long as the key of the redaction is the same, so that joins hold.  Of
documents only the shape is left, of errors their type and a pseudonym of their kind.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, assert_never, cast

from attrs import evolve as replace
from attrs import field, frozen

from ..domain import events as e
from ..domain.events import Event
from ..domain.job import JobSpec
from ..domain.log import Recorded
from ..domain.values import Json
from .replay.facts import AuditLine
from .replay.faults import fingerprint

#: What may be hidden beyond what always is.
HIDEABLE = ("names", "queues", "workers")
#: A pseudonym begins like this, and goes on with letters that no number or hex digit is among.
MARK = "~"
LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
PSEUDONYM_CHARS = 16
PSEUDONYMS_KEPT = 100_000
#: The class of an exception, which is code and no value.
ERROR_TYPE = re.compile(r"[A-Za-z_][\w.]{0,99}(?:Error|Exception|Warning|Timeout|Interrupt|Exit)\b")

Text: TypeAlias = Callable[[str], str]


@frozen
class Redaction:
    """How one export is redacted.  ``key`` is made for it and kept nowhere.

    ``hidden`` are those of ``HIDEABLE`` that become pseudonyms too.
    """

    key: bytes = field(repr=False)
    hidden: frozenset[str] = frozenset()
    pseudonym: Text = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        made = lru_cache(PSEUDONYMS_KEPT)(self._pseudonym)
        object.__setattr__(self, "pseudonym", made)

    def recorded(self, recorded: Recorded) -> Recorded:
        """An entry of the log without what must not leave."""
        return replace(recorded, event=self.event(recorded.event))

    def event(self, event: Event) -> Event:
        """An event without what must not leave."""
        match event:
            case e.Enqueued():
                return replace(event, spec=self._spec(event.spec))
            case e.ItemsJoined():
                return replace(event, items=tuple(map(self.shape, event.items)))
            case e.Leased():
                return replace(event, worker=self.worker(event.worker))
            case e.EffectStarted():
                key, to = self.pseudonym(event.key), self.pseudonym(event.destination)
                return replace(event, key=key, destination=to)
            case e.EffectCompleted():
                key, to = self.pseudonym(event.key), self.pseudonym(event.destination)
                return replace(event, key=key, destination=to, receipt=self.shape(event.receipt))
            case e.EffectReleased():
                key = self.pseudonym(event.key)
                return replace(event, key=key, reason=self.error(event.reason))
            case e.Released():
                return replace(event, note=_or_none(self.error, event.note))
            case e.RetryScheduled() | e.Failed():
                return replace(event, error=self.error(event.error))
            case e.Completed():
                return replace(event, result=self.shape(event.result))
            case e.GroupClosed() | e.Rescheduled() | e.Blocked() | e.Unblocked():
                return event
            case e.Heartbeat() | e.LeaseExpired():
                return event
        assert_never(event)

    def line(self, line: AuditLine) -> AuditLine:
        """A line of the audit log with those members that are known, and no others."""
        known = AUDIT.get(line.kind, {})
        detail = {
            name: known[name](self, value) for name, value in line.detail.items() if name in known
        }
        return AuditLine(
            line.at, line.kind, detail, line.job_id, _or_none(self.worker, line.worker)
        )

    def name(self, text: str) -> str:
        """The name of a job type."""
        return self.pseudonym(text) if "names" in self.hidden else text

    def queue(self, text: str) -> str:
        """The name of a queue."""
        return self.pseudonym(text) if "queues" in self.hidden else text

    def worker(self, text: str) -> str:
        """The id or the name of a worker; hidden, the id of a start still goes with its name."""
        if "workers" not in self.hidden:
            return text
        name, mark, start = text.rpartition("#")
        return self.pseudonym(text) if not mark else f"{self.pseudonym(name)}#{start}"

    def error(self, text: str) -> str:
        """The type of an error, and which other errors are of its kind."""
        found = ERROR_TYPE.match(text)
        kind = self.pseudonym(fingerprint(text))
        return kind if found is None else f"{found[0]}: {kind}"

    def shape(self, document: Json) -> Json:
        """A JSON document with its arrays, members and types, and without its values."""
        return json.dumps(self._shape(json.loads(document)), separators=(",", ":"))

    def _shape(self, value: Any) -> Any:
        if isinstance(value, dict):
            members = cast(dict[str, Any], value)
            return {self.pseudonym(name): self._shape(each) for name, each in members.items()}
        if isinstance(value, list):
            return list(map(self._shape, value))  # pyright: ignore[reportUnknownArgumentType]
        return None if value is None else type(value)()

    def _spec(self, spec: JobSpec) -> JobSpec:
        """A spec of what is named here only: a member that is added is left out until then."""
        hide = self.pseudonym
        return JobSpec(
            spec.id,
            self.name(spec.name),
            self.shape(spec.args),
            spec.enqueued_at,
            self.queue(spec.queue),
            spec.priority,
            spec.policy,
            _or_none(hide, spec.label),
            _or_none(hide, spec.owner),
            _or_none(hide, spec.subject),
            spec.expires_at,
            _or_none(hide, spec.group_key),
            spec.group,
            spec.hold_until,
            _or_none(hide, spec.unique_key),
            _or_none(hide, spec.ordering_key),
            spec.on_hold,
            spec.after,
            spec.sequence,
        )

    def _pseudonym(self, text: str) -> str:
        digits = hmac.digest(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hex()
        return MARK + digits[:PSEUDONYM_CHARS].translate(LETTERS)


def _or_none(hide: Text, text: str | None) -> str | None:
    return None if text is None else hide(text)


def _kept(redaction: Redaction, value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else None


def _name(redaction: Redaction, value: Any) -> str:
    return redaction.name(str(value))


def _queue(redaction: Redaction, value: Any) -> str:
    return redaction.queue(str(value))


def _queues(redaction: Redaction, value: Any) -> list[str]:
    return [redaction.queue(str(each)) for each in value]


def _names(redaction: Redaction, value: Any) -> list[str]:
    return [redaction.name(str(each)) for each in value]


def _worker(redaction: Redaction, value: Any) -> str:
    return redaction.worker(str(value))


#: kind of an audit line -> the members that leave, and how; of other kinds there are none
AUDIT: Mapping[str, Mapping[str, Callable[[Redaction, Any], Any]]] = {
    "worker_started": {
        "name": _worker,
        "capacity": _kept,
        "queues": _queues,
        "names": _names,
        "code_version": _kept,
    },
    "worker_died": {"noticed_by": _worker},
    "late_write_refused": {"answer": _kept, "lease": _kept, "current": _kept, "name": _name},
    "queue_paused": {"queue": _queue},
    "queue_resumed": {"queue": _queue},
    "limit_changed": {"queue": _queue, "limit": _kept},
    "schedule_changed": {"schedule": _name, "cron": _kept},
}
