"""What handlers do in a world, and what is known of every run beside the log.

The script draws for each run how it goes; the ledger keeps when each run began and ended and
whether it came to its end.  The log is judged by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from random import Random
from typing import Any
from uuid import UUID

from attrs import define, frozen

from leasebook.domain import Job, Json, Retry, is_suspect
from leasebook.infra.app.registry import JobType
from leasebook.infra.app.run import Run
from leasebook.infra.app.signals import Fail, RateLimited, RetryIn, Snooze

from .doubles import VirtualLoop
from .outside import Outside
from .profile import Profile
from .scheduler import Process, Scheduler

QUICK_SECONDS_MAX = 0.4
STUBBORN_SECONDS = 3.0
#: What no store can hold, standing for whatever slips past the checks of results.
UNSTORABLE = "\0"
BLOCK_SECONDS_MAX = 2.0


@frozen
class Plan:
    """How one run goes: how long it takes, and what it does then."""

    seconds: float
    ending: str = "done"


@define(eq=False)
class Effect:
    """One run as it really went.  Times are the scheduler's; ``ended`` is None while it runs."""

    job: Job
    token: int
    worker: str
    process: Process
    suspect: bool
    began: float
    ended: float | None = None
    ending: str | None = None

    @contextmanager
    def raising(self) -> Generator[None]:
        """What is raised here is the end of the run, by its own doing."""
        try:
            yield
        except Exception:
            self.ending = "raised"
            raise

    @property
    def over(self) -> float:
        """When it was over: at its end, or at its process's if that came first."""
        ended = float("inf") if self.ended is None else self.ended
        died = float("inf") if self.process.died_at is None else self.process.died_at
        return min(ended, died)


class Script:
    """Draws what each run does, and writes the ledger."""

    def __init__(self, scheduler: Scheduler, profile: Profile) -> None:
        self.scheduler = scheduler
        self._chance: Random = scheduler.chance
        self._profile = profile
        self.poison: set[UUID] = set()
        self.ledger: list[Effect] = []
        self.outside = Outside(scheduler, profile)

    def begin(self, job: Job, process: Process) -> Effect:
        """A run begins."""
        assert job.lease is not None
        effect = Effect(
            job, job.lease.token, job.lease.worker, process, is_suspect(job), self.scheduler.now
        )
        self.ledger.append(effect)
        self.scheduler.tell(f"runs {job.id.int & 0xFFFF} under lease {effect.token}")
        return effect

    def draw(self, job: Job) -> Plan:
        """How this run goes."""
        chance, policy = self._chance, job.spec.policy
        quick = chance.random() * QUICK_SECONDS_MAX
        if job.id in self.poison and "handler killed its worker" in self._profile.rates:
            self._profile.fired["handler killed its worker"] += 1
            return Plan(quick, "handler killed its worker")
        faults = self._profile.handler_faults
        if not faults:
            return Plan(quick)
        fault = chance.choice(faults)
        if fault == "no thread left" or not self._profile.strikes(fault):
            return Plan(quick)
        if fault == "handler slow past its lease":
            return Plan(min(policy.lease * (1.2 + chance.random()), policy.timeout * 0.9))
        if fault == "handler past its time-out":
            return Plan(policy.timeout * (1.05 + chance.random()), fault)
        return Plan(quick, fault)

    def end(self, effect: Effect, plan: Plan) -> object:
        """What the handler says in the end: it returns something, or raises."""
        chance, seconds = self._chance, self._chance.random() * 3.0
        effect.ended, effect.ending = self.scheduler.now, "raised"
        match plan.ending:
            case "handler failed":
                raise ValueError("boom")
            case "handler rejected":
                raise Fail("of no use")
            case "handler snoozed":
                raise Snooze(seconds)
            case "handler rate limited":
                raise RateLimited(seconds)
            case "handler asked for a retry":
                raise RetryIn(seconds)
            case "handler result refused by the store":
                effect.ending = "gave what cannot be stored"
                return UNSTORABLE
            case _:
                effect.ending = "done"
                return chance.choice((None, 1))


class ScriptedType(JobType):
    """A job type whose handler follows the script.  One of each is made for each process."""

    def __init__(
        self, script: Script, process: Process, loop: VirtualLoop, *, is_async: bool
    ) -> None:
        self.retry = Retry(delays=(0.2, 1.0, 2.0))
        self._script = script
        self._process = process
        self._loop = loop
        self._async = is_async

    @property
    def is_async(self) -> bool:
        return self._async

    def encode_result(self, value: object) -> Json:
        return '"\0"' if value == UNSTORABLE else super().encode_result(value)

    def invoke(self, run: object, job: Job) -> Any:
        assert isinstance(run, Run)
        return self._coroutine(run, job) if self._async else self._blocking(run, job)

    async def _coroutine(self, run: Run, job: Job) -> object:
        script, scheduler = self._script, self._script.scheduler
        effect, plan = script.begin(job, self._process), script.draw(job)
        try:
            try:
                await asyncio.sleep(plan.seconds)
            except asyncio.CancelledError:
                if plan.ending != "handler stubborn":
                    raise
            with effect.raising():
                await script.outside.coroutine(run)
            match plan.ending:
                case "handler stubborn":
                    await _stubborn()
                case "handler blocked the loop":
                    seconds = scheduler.chance.random() * BLOCK_SECONDS_MAX
                    self._loop.blocked_until = scheduler.now + seconds
                    await asyncio.sleep(0)
                case "handler killed its worker":
                    self._process.dying = True
                    await asyncio.sleep(1_000)
                case _:
                    pass
            return script.end(effect, plan)
        finally:
            effect.ended = scheduler.now

    def _blocking(self, run: Run, job: Job) -> object:
        script, scheduler = self._script, self._script.scheduler
        effect, plan = script.begin(job, self._process), script.draw(job)
        try:
            self._sleep(run, plan.seconds)
            with effect.raising():
                script.outside.blocking(run)
            if plan.ending == "handler killed its worker":
                self._process.dying = True
                scheduler.pause()
            if plan.ending == "handler stubborn":
                scheduler.sleep(STUBBORN_SECONDS)
            return script.end(effect, plan)
        finally:
            effect.ended = scheduler.now

    def _sleep(self, run: Run, seconds: float) -> None:
        """A good handler looks now and then whether its run is still wanted."""
        scheduler = self._script.scheduler
        until = scheduler.now + seconds
        while scheduler.now < until:
            if run.lost or run.stopping:
                raise InterruptedError("no longer wanted")
            scheduler.sleep(min(0.5, until - scheduler.now))


async def _stubborn() -> None:
    """Go on for a while, whoever asks to stop."""
    left = STUBBORN_SECONDS
    while left > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.5)
        left -= 0.5
