"""Where to measure, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

import psycopg
from attrs import frozen

from ..database import Server
from ..meter import wait_quiet
from ..peers import Spec
from ..process import call
from ..result import Result

Measure = Callable[["Bench", Spec, int], Result]


@frozen
class Size:
    """How much of each: jobs of a drain, what lies behind it, seconds."""

    jobs: int
    single: int
    paced: int
    finished: int
    delayed: int
    keyed: int
    held: int
    hot_seconds: float
    snapshot_seconds: float
    idle_seconds: float


SIZES = MappingProxyType(
    {
        "tiny": Size(2_000, 200, 50, 5_000, 2_000, 500, 100, 1.0, 4.0, 4.0),
        "short": Size(20_000, 1_000, 200, 100_000, 20_000, 5_000, 1_000, 3.0, 15.0, 10.0),
        "usual": Size(50_000, 2_000, 300, 200_000, 50_000, 10_000, 2_000, 4.0, 30.0, 15.0),
        "full": Size(50_000, 2_000, 500, 1_000_000, 200_000, 100_000, 10_000, 5.0, 600.0, 30.0),
    }
)


@frozen
class Bench:
    """A server and sizes.  ``quiet`` seconds are waited for a machine at rest."""

    server: Server
    size: Size
    quiet: float

    def wait_quiet(self) -> None:
        """Wait until the others on the machine do little."""
        wait_quiet(self.quiet, self.server.postmaster)

    def fresh(self, spec: Spec) -> str:
        """The DSN of a new database with the queue's empty tables."""
        server = self.server
        return server.fresh(server.template(_name(spec), lambda dsn: call(spec, "setup", dsn)))

    def loaded(self, spec: Spec) -> str:
        """The DSN of a new database with a long history behind it."""

        def load(dsn: str) -> None:
            call(spec, "setup", dsn)
            for what in ("finished", "delayed", "keyed", "held"):
                call(spec, what, dsn, getattr(self.size, what))

        return self.server.fresh(self.server.template(f"{_name(spec)}_loaded", load))


def answer(connection: psycopg.Connection, question: str) -> object:
    """The one value of a query's one row."""
    row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def percentile(ordered: Sequence[float], share: float) -> float:
    """Of values in order."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _name(spec: Spec) -> str:
    return "".join(each if each.isalnum() else "_" for each in spec.text)[-30:].lower()
