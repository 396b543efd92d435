"""An application whose jobs must not run again once a run was interrupted."""

from __future__ import annotations

import asyncio
import os

from leasebook import Book, Group, Retry, Run
from tests.worker.app import effect, passed, wait_at

book = Book()


@book.job(on_expired="abort")
async def charge(run: Run, gate: str) -> str:
    effect(run)
    await passed(gate)
    return "charged"


@book.job(on_expired="abort")
def charge_thread(run: Run, gate: str) -> str:
    effect(run)
    wait_at(gate)
    return "charged"


@book.job(on_expired="abort", executor="process")
def charge_process(run: Run, gate: str) -> str:
    effect(run)
    wait_at(gate)
    return "charged"


@book.job(on_expired="abort", group=Group(window=0.1, max_hold=1))
async def charge_all(run: Run, items: list[str]) -> None:
    effect(run, ",".join(items))
    await passed("never")


@book.job(on_expired="abort", lease=1.2)
async def short_lease(run: Run, gate: str) -> None:
    effect(run)
    await passed(gate)


@book.job(on_expired="abort", timeout=1.0)
async def hung(run: Run) -> None:
    effect(run)
    await asyncio.sleep(3600)


@book.job(on_expired="abort", timeout=1.0)
def hung_thread(run: Run) -> None:
    effect(run)
    wait_at("never")


@book.job(on_expired="abort", timeout=4, executor="process")
def hung_process(run: Run) -> None:
    effect(run)
    wait_at("never")


@book.job(on_expired="abort", executor="process")
def dies(run: Run) -> None:
    effect(run)
    os._exit(3)


@book.job(on_expired="abort")
async def breaks_in_a_stop(run: Run) -> None:
    """Its clean-up fails when it is cancelled."""
    effect(run)
    try:
        await asyncio.sleep(3600)
    finally:
        raise ConnectionError("the till does not answer")


@book.job(on_expired="abort", retry=Retry(1, delay=0.1))
async def fails(run: Run) -> None:
    effect(run)
    raise ValueError("no change")


@book.job
async def quick(run: Run, n: int = 0) -> None:
    effect(run)
