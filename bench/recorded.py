"""``bench/recorded.json``: the last figures that were taken for the page, each run of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

from .environments import TOP
from .result import Result

PATH = TOP / "bench" / "recorded.json"


@frozen
class Recording:
    """One measure as it was last recorded: when, of which commit, how much, and every run.

    ``absent`` tells which queues are missing and why.
    """

    facts: Mapping[str, Any]
    size: str
    rounds: int
    results: Sequence[Result]
    absent: Mapping[str, str]


@frozen
class Recorded:
    """Everything.  ``guard`` holds the ratios that ``make bench-guard`` compares with."""

    measures: Mapping[str, Recording] = field(factory=dict[str, Recording])
    guard: Mapping[str, float] = field(factory=dict[str, float])
    guarded: Mapping[str, Any] = field(factory=dict[str, Any])

    @property
    def results(self) -> list[Result]:
        """Of all measures."""
        return [result for each in self.measures.values() for result in each.results]


def load(path: Path = PATH) -> Recorded:
    """What is recorded; nothing when there is no file."""
    if not path.exists():
        return Recorded()
    document = json.loads(path.read_text("utf-8"))
    measures = {
        name: Recording(
            each["facts"],
            each["size"],
            each["rounds"],
            [Result(**result) for result in each["results"]],
            each["absent"],
        )
        for name, each in document["measures"].items()
    }
    return Recorded(measures, document["guard"], document["guarded"])


def save(recorded: Recorded, path: Path = PATH) -> None:
    """Write it, figures to six digits, so that a difference of two records can be read."""
    document = asdict(recorded, value_serializer=_short)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _short(owner: object, attribute: object, value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
