"""The world outside the database, which answers to effects and remembers every call."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from uuid import UUID

from attrs import define

from leasebook.domain import Job
from leasebook.infra.app.effects import Effect
from leasebook.infra.app.run import Run
from leasebook.infra.app.writing import EffectCommand
from leasebook.infra.worker.bell import Bell
from leasebook.infra.worker.writes import BellWriter

from .doubles import VirtualEvent
from .profile import Profile
from .scheduler import Scheduler

DESTINATION = "outside"
CALL_SECONDS_MAX = 0.3
#: So many of all jobs have effects: every third.
EVERY = 3


class Refused(Exception):
    """What the outside has certainly not done."""

    status = 404


@define(eq=False)
class Call:
    """One call as it really went: ``done``, ``refused``, or unknown (None) to whoever made it."""

    job_id: UUID
    token: int
    key: str
    number: int
    began: float
    ending: str | None = None


class Outside:
    """Takes calls, and keeps what resumed runs were told of earlier ones."""

    def __init__(self, scheduler: Scheduler, profile: Profile) -> None:
        self.calls: list[Call] = []
        self.told: list[tuple[UUID, str, object]] = []
        self._scheduler = scheduler
        self._profile = profile

    def keys(self, job: Job) -> tuple[str, ...]:
        """The effects of a job, in their order; most have none."""
        number = job.id.int & 0xFFFF
        return ("first", "second")[: 1 + number // EVERY % 2] if number % EVERY == 0 else ()

    async def coroutine(self, run: Run) -> None:
        """Make the job's calls, those that have not been made."""
        for key in self.keys(run.job):
            async with run.effect(key, to=DESTINATION) as effect:
                if self._is_done(run, effect):
                    continue
                call = self._begin(run, key)
                await asyncio.sleep(self._seconds())
                self._end(call, effect)

    def blocking(self, run: Run) -> None:
        """The same in a thread."""
        for key in self.keys(run.job):
            with run.effect(key, to=DESTINATION) as effect:
                if self._is_done(run, effect):
                    continue
                call = self._begin(run, key)
                self._scheduler.sleep(self._seconds())
                self._end(call, effect)

    def _is_done(self, run: Run, effect: Effect) -> bool:
        if effect.done:
            self._profile.fired["(effect resumed)"] += 1
            self.told.append((run.job_id, effect.key, effect.receipt))
        return effect.done

    def _begin(self, run: Run, key: str) -> Call:
        call = Call(run.job_id, run.token, key, len(self.calls), self._scheduler.now)
        self.calls.append(call)
        self._scheduler.tell(f"calls {run.job_id.int & 0xFFFF} {key} under lease {run.token}")
        return call

    def _end(self, call: Call, effect: Effect) -> None:
        profile = self._profile
        if profile.strikes("effect refused"):
            call.ending = "refused"
            raise Refused
        if profile.strikes("effect answer lost"):
            raise TimeoutError
        if profile.strikes("effect left without a word"):
            return
        call.ending = "done"
        effect.complete(call.number)

    def _seconds(self) -> float:
        return self._scheduler.chance.random() * CALL_SECONDS_MAX


class VirtualWriter:
    """Waits for writes as an actor does."""

    def __init__(self, bell: Bell, scheduler: Scheduler) -> None:
        self._writer = BellWriter(bell)
        self._scheduler = scheduler

    def submit(self, job: Job, command: EffectCommand) -> Future[Job]:
        return self._writer.submit(job, command)

    def wait(self, written: Future[Job]) -> Job:
        event = VirtualEvent(self._scheduler)
        written.add_done_callback(lambda _: event.set())
        while not written.done():
            event.wait()
        return written.result()
