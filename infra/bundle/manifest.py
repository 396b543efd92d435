"""The manifest: what a bundle holds, and by which hashes its parts are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

FORMAT = 1
MANIFEST, EVENTS, AUDIT = "manifest.json", "events.ndjson.zst", "audit.ndjson.zst"
PARTS = (EVENTS, AUDIT)


@frozen
class Part:
    """One part: its lines, and the size and SHA-256 of its compressed bytes."""

    lines: int
    bytes: int
    sha256: str


@frozen
class Manifest:
    """What a bundle says of itself.

    It holds every stream that the time from ``since`` to ``until`` concerns, and all that happened
    from ``known_from`` on.  ``position`` is the snapshot that it was read with, None for one that
    was made from another bundle; ``redacted`` whether values were taken out, ``hidden`` what else,
    ``filters`` by what jobs were chosen.
    """

    leasebook: str
    since: datetime
    until: datetime
    known_from: datetime
    position: Mapping[str, str] | None
    redacted: bool
    hidden: tuple[str, ...]
    filters: tuple[str, ...]
    parts: Mapping[str, Part]

    def text(self) -> str:
        """The manifest as it is written."""
        document = {
            "format": FORMAT,
            "leasebook": self.leasebook,
            "from": self.since.isoformat(),
            "to": self.until.isoformat(),
            "known_from": self.known_from.isoformat(),
            "position": self.position,
            "redacted": self.redacted,
            "hidden": self.hidden,
            "filters": self.filters,
            "parts": {
                name: {"lines": part.lines, "bytes": part.bytes, "sha256": part.sha256}
                for name, part in self.parts.items()
            },
        }
        return json.dumps(document, indent=2) + "\n"


def manifest_of(document: Mapping[str, Any]) -> Manifest:
    """The manifest that ``text`` told.  Raises KeyError, TypeError and ValueError for another."""
    parts: Mapping[str, Mapping[str, Any]] = document["parts"]
    return Manifest(
        document["leasebook"],
        datetime.fromisoformat(document["from"]),
        datetime.fromisoformat(document["to"]),
        datetime.fromisoformat(document["known_from"]),
        document["position"],
        document["redacted"],
        tuple(document["hidden"]),
        tuple(document["filters"]),
        {name: Part(each["lines"], each["bytes"], each["sha256"]) for name, each in parts.items()},
    )
