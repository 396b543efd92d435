"""Actors by turns on a virtual clock.

An actor is a greenlet of some process.  It runs until it pauses, sleeps or waits; then the
scheduler draws the next one from all that could run.  Everything happens in one thread and every
choice comes from one seeded source, so that a seed is a whole history.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

#: A turn takes between nothing and this much of virtual time.
TURN_SECONDS_MAX = 0.002
TURNS_MAX = 40_000


class Killed(BaseException):
    """Raised inside an actor whose process has died."""


class Stuck(Exception):
    """The world came to no end within its bounds."""


class Process:
    """What lives, freezes and dies together.  ``skew`` is added to its monotonic clock."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.skew = 0.0
        self.frozen = False
        self.dying = False
        self.died_at: float | None = None
        self.actors: list[Actor] = []
        self.stalled: list[Actor] = []
        self.on_death: Callable[[], None] | None = None


class Actor:
    """One thread of a process."""

    __slots__ = ("alive", "greenlet", "name", "process", "ticket", "waiting", "woken")

    def __init__(self, process: Process, name: str, body: greenlet) -> None:
        self.process = process
        self.name = name
        self.greenlet = body
        self.alive = True
        self.waiting = False
        self.woken = False
        self.ticket = 0


class Scheduler:
    """Whose turn it is.  ``trace`` is the history so far, one line for each step worth telling."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.now = 0.0
        self.turns = 0
        self.current: Actor | None = None
        self.trace: list[str] = []
        self.crashes: list[tuple[str, Exception]] = []
        self._hub = getcurrent()
        self._ready: list[Actor] = []
        self._numbers = count()
        self._timers: list[tuple[float, int, int, Actor | Callable[[], None]]] = []

    def spawn(self, process: Process, name: str, work: Callable[[], None]) -> Actor:
        """A new thread of a process; it has its first turn when it is drawn."""

        def body() -> None:
            try:
                work()
            except Killed:
                pass
            except Exception as error:
                self.crashes.append((name, error))
            actor.alive = False

        actor = Actor(process, name, greenlet(body, self._hub))
        process.actors.append(actor)
        self._ready.append(actor)
        return actor

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later, between two turns."""
        heapq.heappush(self._timers, (self.now + seconds, next(self._numbers), 0, action))

    def tell(self, what: str) -> None:
        """Add a line to the trace."""
        who = "-" if self.current is None else self.current.name
        self.trace.append(f"{self.now:9.4f} {who} {what}")

    def pause(self) -> None:
        """Let others have a turn."""
        actor = self.current
        assert actor is not None
        self._ready.append(actor)
        self._switch(actor)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until woken, at most so long; whether it was woken."""
        actor = self.current
        assert actor is not None
        actor.ticket += 1
        actor.waiting, actor.woken = True, False
        if seconds is not None:
            entry = (self.now + max(0.0, seconds), next(self._numbers), actor.ticket, actor)
            heapq.heappush(self._timers, entry)
        self._switch(actor)
        return actor.woken

    def sleep(self, seconds: float) -> None:
        """Wait for so long, whoever wakes it."""
        until = self.now + seconds
        while self.now < until:
            self.wait(until - self.now)

    def wake(self, actor: Actor) -> None:
        """End the wait of an actor, if it waits."""
        if actor.alive and actor.waiting:
            actor.waiting, actor.woken = False, True
            self._ready.append(actor)

    def thaw(self, process: Process) -> None:
        """Let a frozen process go on."""
        process.frozen = False
        self._ready += process.stalled
        process.stalled.clear()

    def kill(self, process: Process) -> None:
        """End every thread of a process at once, wherever it is.  Only between two turns."""
        if process.died_at is not None:
            return
        process.died_at = self.now
        for actor in process.actors:
            if actor.alive:
                actor.alive = actor.waiting = False
                if actor.greenlet:  # It has begun.
                    self.current = actor
                    actor.greenlet.throw(Killed)
                    self.current = None
        if process.on_death is not None:
            process.on_death()

    def run(self, done: Callable[[], bool], until: float) -> None:
        """Give turns until ``done``.  Raises Stuck at second ``until``, or after too many turns."""
        chance, ready = self.chance.random, self._ready
        while not done():
            self._fire()
            if not ready:
                if not self._timers or self._timers[0][0] > until:
                    raise Stuck(f"nobody has come to an end by second {until:.0f}")
                self.now = max(self.now, self._timers[0][0])
                continue
            place = int(chance() * len(ready))
            ready[place], ready[-1] = ready[-1], ready[place]
            actor = ready.pop()
            if not actor.alive:
                continue
            if actor.process.frozen:
                actor.process.stalled.append(actor)
                continue
            self.turns += 1
            self.now += chance() * TURN_SECONDS_MAX
            if self.turns > TURNS_MAX or self.now > until:
                raise Stuck(f"no end after {self.turns} turns at second {self.now:.0f}")
            self.current = actor
            actor.greenlet.switch()
            self.current = None
            if actor.process.dying:
                self.kill(actor.process)

    def _fire(self) -> None:
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            _, _, ticket, who = heapq.heappop(timers)
            if not isinstance(who, Actor):
                who()
            elif who.alive and who.waiting and who.ticket == ticket:
                who.waiting = False
                self._ready.append(who)

    def _switch(self, actor: Actor) -> None:
        if actor.alive:
            self._hub.switch()
        if not actor.alive:
            raise Killed
