"""Handlers with effects, and the outside that they speak to: a table which remembers every call."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg

from leasebook import Book, EffectRefused, Rejected, Retry, Run, StaleLease
from tests.worker.app import is_open, passed, wait_at

book = Book()

INSERT = "insert into effects (job_id, start, pid, note) values (%s, %s, %s, %s)"
CHAT = "chat"


class HttpError(Exception):
    """As HTTP libraries make them: the status is on the response."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"HTTP {status} for https://bot:s3cret@chat.example/?token=abcdef")
        self.response = type("Response", (), {"status_code": status, "headers": headers})()


def outside(run: Run, note: str = "posted") -> None:
    """The call that must not be made twice."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"], autocommit=True) as connection:
        connection.execute(INSERT, (run.job_id, run.start, os.getpid(), note))


def die_at(point: str, wanted: str) -> None:
    """Be killed here, in the first run only: a gate tells that the point was passed before."""
    if point == wanted and not is_open(f"died at {point}"):
        open(os.path.join(os.environ["LEASEBOOK_TEST_FOLDER"], f"died at {point}"), "w").close()
        os.kill(os.getpid(), 9)


@book.job(retry=Retry(3, delay=0.1))
async def posts(run: Run, die: str = "") -> Any:
    die_at("before the effect", die)
    async with run.effect("post:42", to=CHAT) as effect:
        if effect.done:
            outside(run, "resumed")
            return effect.receipt
        die_at("begun", die)
        outside(run)
        die_at("called", die)
        effect.complete({"ts": run.start})
        die_at("before the receipt", die)
    die_at("after the receipt", die)
    return effect.receipt


@book.job(retry=Retry(3, delay=0.1))
def posts_thread(run: Run, die: str = "") -> Any:
    die_at("before the effect", die)
    with run.effect("post:42", to=CHAT) as effect:
        if effect.done:
            outside(run, "resumed")
            return effect.receipt
        die_at("begun", die)
        outside(run)
        die_at("called", die)
        effect.complete({"ts": run.start})
        die_at("before the receipt", die)
    die_at("after the receipt", die)
    return effect.receipt


@book.job(executor="process", retry=Retry(3, delay=0.1))
def posts_process(run: Run, die: str = "") -> Any:
    die_at("before the effect", die)
    with run.effect("post:42", to=CHAT) as effect:
        if effect.done:
            outside(run, "resumed")
            return effect.receipt
        die_at("begun", die)
        outside(run)
        die_at("called", die)
        effect.complete({"ts": run.start})
        die_at("before the receipt", die)
    die_at("after the receipt", die)
    return effect.receipt


@book.job(retry=Retry(2, delay=0.1))
async def answers(run: Run, how: str, status: int = 0) -> Any:
    """Every way in which a block can end."""
    async with run.effect("post:42", to=CHAT) as effect:
        if effect.done:
            return effect.receipt
        outside(run, how)
        if run.start == 1:
            match how:
                case "http":
                    raise HttpError(status, **{"Retry-After": "0.1"} if status == 429 else {})
                case "rejected":
                    raise Rejected("unknown channel, token=abcdef")
                case "released":
                    effect.release("the channel was locked")
                    return "released"
                case "lost":
                    raise TimeoutError("no answer")
                case "nothing":
                    return "nothing"
                case "done, then failed":
                    effect.complete(1)
                    raise ValueError("after the call")
                case "bad receipt":
                    effect.complete(object())
                case _:
                    pass
        effect.complete(how)
    return effect.receipt


@book.job(retry=Retry(1, delay=0.1))
async def refuses(run: Run) -> list[str]:
    """Keys stand for one destination and one kind."""
    said: list[str] = []
    async with run.effect("post:42", to=CHAT) as effect:
        effect.complete()
        try:
            async with run.effect("post:42", to=CHAT):
                said.append("twice at once")
        except EffectRefused as error:
            said.append(str(error))
    for key, to in (("post:42", "mail"), ("plan", CHAT), ("x" * 241, CHAT)):
        try:
            await run.snapshot("plan", {"to": 1})
            async with run.effect(key, to=to):
                said.append("entered")
        except ValueError as error:
            said.append(type(error).__name__)
        except EffectRefused as error:
            said.append(str(error))
    async with run.effect("post:42", to=CHAT) as effect:
        assert effect.done
    return said


@book.job(retry=Retry(2, delay=0.1))
async def decides(run: Run) -> Any:
    chosen = await run.snapshot("plan", {"start": run.start})
    if run.start < 3:
        raise ValueError("again")
    return chosen


@book.job(retry=Retry(2, delay=0.1))
def decides_thread(run: Run) -> Any:
    chosen = run.snapshot("plan", {"start": run.start})
    if run.start < 3:
        raise ValueError("again")
    return chosen


@book.job(retry=Retry(2, delay=0.1))
async def once(run: Run) -> Any:
    async def call() -> str:
        outside(run)
        return f"start {run.start}"

    receipt = await run.once("post:42", call, to=CHAT)
    if run.start < 3:
        raise ValueError("again")
    return receipt


@book.job(retry=Retry(2, delay=0.1))
def once_thread(run: Run) -> Any:
    def call() -> str:
        outside(run)
        return f"start {run.start}"

    receipt = run.once("post:42", call, to=CHAT)
    if run.start < 3:
        raise ValueError("again")
    return receipt


@book.job(retry=Retry(2, delay=60), lease=2)
async def stale(run: Run) -> str:
    """Waits at the gate of its start inside of an effect, and tells what its writes met."""
    met: list[str] = []
    try:
        async with run.effect(f"post:{run.start}", to=CHAT) as effect:
            outside(run)
            # Its worker may have noticed that the lease is gone, and cancel it, before it is here.
            with suppress(asyncio.CancelledError):
                await passed(str(run.start))
            effect.complete({"start": run.start})
    except StaleLease as error:
        met.append(error.command)
    outside(run, ",".join(met))
    return ",".join(met)


@book.job(retry=Retry(2, delay=60), lease=2)
def stale_thread(run: Run) -> str:
    outside(run)
    wait_at(str(run.start))
    met: list[str] = []
    attempts: dict[str, Any] = {
        "effect": lambda: run.once("late", lambda: outside(run, "LATE"), to=CHAT),
        "snapshot": lambda: run.snapshot("plan", 1),
        "fence": lambda: in_transaction(run.fence),
        "mutation": lambda: in_transaction(partial(mutate, run)),
        "complete": lambda: in_transaction(run.complete),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except StaleLease:
            met.append(what)
    outside(run, " ".join(met))
    return f"start {run.start}"


def in_transaction(act: Any) -> None:
    with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as caller:
        act(caller)


def mutate(run: Run, caller: Any) -> None:
    with run.mutation(caller, "credit", to="accounts") as effect:
        if not effect.done:
            effect.complete()


@book.job(retry=Retry(2, delay=0.1))
def credits(run: Run, fail: str = "") -> Any:
    """A change of the business's own, made once however often it runs."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as caller:
        with run.mutation(caller, "credit:7", to="accounts") as effect:
            if not effect.done:
                caller.execute(INSERT, (run.job_id, run.start, 0, "credited"))
                if fail == "inside" and run.start == 1:
                    raise ValueError("inside")
                effect.complete({"start": run.start})
        if fail == "before the commit" and run.start == 1:
            raise ValueError("before the commit")
    if fail == "after the commit" and run.start == 1:
        raise ValueError("after the commit")
    return effect.receipt


@book.job(retry=Retry(2, delay=0.1))
def settles(run: Run, how: str) -> str:
    """Is done together with a change of the business's own."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as caller:
        caller.execute(INSERT, (run.job_id, run.start, 0, "settled"))
        run.complete(caller, {"start": run.start})
        if how == "rolled back" and run.start == 1:
            caller.rollback()
            raise ValueError("rolled back")
    if how == "fails afterwards":
        raise ValueError("afterwards")
    return "not kept"


@book.job(retry=Retry(0), timeout=0.6)
def hangs_fenced(run: Run, gate: str) -> None:
    """Holds its row long past its time-out."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as caller:
        run.fence(caller)
        outside(run)
        wait_at(gate)


@book.job(retry=Retry(2, delay=0.1))
def locks(run: Run) -> str:
    """An effect while a transaction of the run's own holds its row would wait for ever."""
    with psycopg.connect(os.environ["LEASEBOOK_DSN"]) as caller:
        run.fence(caller)
        try:
            run.once("post:42", lambda: 1, to=CHAT)
        except EffectRefused as error:
            caller.rollback()
            run.once("post:42", lambda: 2, to=CHAT)
            return str(error)
    return "not refused"


@book.job(retry=Retry(2, delay=0.1))
async def forgets(run: Run) -> Any:
    """Does not look whether it was done."""
    async with run.effect("post:42", to=CHAT) as effect:
        outside(run)
        effect.complete({"start": run.start})
    if run.start == 1:
        raise ValueError("again")
    return effect.receipt
