"""Two sessions on PostgreSQL that take turns statement by statement, as a schedule says.

A session is a real client behind a passage that holds every statement back until it is let go on.
One whose statement waits for a lock cannot go on, and the other has its turn.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Thread
from time import monotonic
from typing import Any

import psycopg
from attrs import frozen

from tests.crashpoints.passage import Passage

PATIENCE_SECONDS = 30.0
#: Most statements have been answered by then, and nobody has to ask whether they wait.
GLANCE_SECONDS = 0.003

Act = Callable[[str], Any]


@frozen
class Schedule:
    """Who begins; after how many statements the other has its turn, and after how many of those the
    first again.  Then each goes on to its end.
    """

    begins: int
    first: int
    second: int

    def __str__(self) -> str:
        one, two = ("A", "B") if self.begins == 0 else ("B", "A")
        return f"{self.first} of {one}, {self.second} of {two}, the rest of {one}"


def schedules(lengths: tuple[int, int]) -> Iterator[Schedule]:
    """Every way to switch at most twice between sessions of so many statements."""
    for begins in (0, 1):
        for first in range(lengths[begins]):
            for second in range(1, lengths[1 - begins] + 1):
                yield Schedule(begins, first, second)


class Session(Passage):
    """One client, and the way to its server."""

    def __init__(self, dsn: str, act: Act, threads: ThreadPoolExecutor) -> None:
        super().__init__(dsn, None, lambda backend: None)
        self._asks, self._may, self._heard = Event(), Event(), Event()
        self._waits = False
        self._serving = Thread(target=self._serve_all, daemon=True)
        self._serving.start()
        self.told: Future[Any] = threads.submit(act, self.dsn)
        self.told.add_done_callback(self._ended)

    def asked(self) -> None:
        self._asks.set()
        assert self._may.wait(PATIENCE_SECONDS)
        self._may.clear()

    def answered(self) -> None:
        self._heard.set()

    @property
    def over(self) -> bool:
        """Whether the client has come to its end."""
        if self._waits:
            return False
        assert self._asks.wait(PATIENCE_SECONDS), "the client is stuck"
        return self.told.done()

    def step(self, admin: psycopg.Connection[Any]) -> bool:
        """Let the next statement, or the one that waits, go on; False while it waits for a lock."""
        if not self._waits:
            self._asks.clear()
            self._waits = True
            self._may.set()
        give_up = monotonic() + PATIENCE_SECONDS
        while not self._heard.wait(GLANCE_SECONDS):
            assert monotonic() < give_up, f"no answer to {self.statements[-1]}"
            if _waits_for_lock(admin, self.backend):
                return False
        self._heard.clear()
        self._waits = False
        return True

    def close(self) -> None:
        """Let nobody else pass."""
        self.door.shutdown(socket.SHUT_RDWR)
        self._serving.join(PATIENCE_SECONDS)
        super().close()

    def _ended(self, _: object) -> None:
        self._asks.set()
        self._heard.set()

    def _serve_all(self) -> None:
        with suppress(OSError):
            while True:
                self.serve()


def run(
    dsn: str, admin: psycopg.Connection[Any], acts: tuple[Act, Act], schedule: Schedule | None
) -> tuple[tuple[Any, Any], tuple[int, int]]:
    """Run two clients by a schedule, None: one after the other.  What they said; how many steps."""
    schedule = schedule or Schedule(0, 1_000, 1_000)
    with ThreadPoolExecutor(2) as threads:
        sessions = [Session(dsn, act, threads) for act in acts]
        try:
            _drive(sessions, admin, schedule)
        finally:
            for each in sessions:
                each.close()
    one, two = sessions
    return (one.told.result(), two.told.result()), (len(one.statements), len(two.statements))


def _drive(sessions: list[Session], admin: psycopg.Connection[Any], schedule: Schedule) -> None:
    turns = [schedule.first, schedule.second, 1_000, 1_000]
    for number, most in enumerate(turns):
        now = sessions[(schedule.begins + number) % 2]
        other = sessions[(schedule.begins + number + 1) % 2]
        taken = 0
        while taken < most and not now.over:
            if now.step(admin):
                taken += 1
            elif other.over or not other.step(admin):
                raise AssertionError("neither can go on")


def _waits_for_lock(admin: psycopg.Connection[Any], backend: int) -> bool:
    row = admin.execute("select cardinality(pg_blocking_pids(%s)) > 0", (backend,)).fetchone()
    return bool(row and row[0])
