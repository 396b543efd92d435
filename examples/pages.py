"""The application of ``leasebook demo``: pages change in bursts, a search index follows.

Each change is written to ``pages`` in a business transaction that also enqueues a ``sync_page``
item under the page's key.  Items of one page that come close together become one run.  The index
is somebody else's service with a rate limit; the demo's stand-in answers after a tenth of a second
or three and now and then breaks.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from datetime import datetime
from time import monotonic
from typing import cast

from attrs import frozen
from sqlalchemy import DateTime, String, Table
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from leasebook import Book, Group, RateLimited, Retry, Run

book = Book(schema="leasebook_demo")

CALLS_MAX = 20
CALLS_WINDOW_SECONDS = 0.1
RETRY_AFTER_SECONDS = 1.0
ANSWER_SECONDS_MIN = 0.08
ANSWER_SECONDS_SPREAD = 0.2


class Base(DeclarativeBase):
    """The application's own tables."""


class Page(Base):
    """A page and how often it has changed."""

    __tablename__ = "pages"
    __table_args__ = ({"schema": "leasebook_demo"},)

    path: Mapped[str] = mapped_column(String, primary_key=True)
    changes: Mapped[int]
    changed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))


@frozen
class PageChanged:
    """One product event, as the page service sends it."""

    path: str
    kind: str
    at: datetime


class IndexDown(Exception):
    """The search index could not be reached."""


_calls: deque[float] = deque(maxlen=CALLS_MAX)


def _take_call() -> None:
    """Count a call against the index's limit, as its server would; a burst goes over it."""
    now = monotonic()
    if len(_calls) == CALLS_MAX and now - _calls[0] < CALLS_WINDOW_SECONDS:
        raise RateLimited(RETRY_AFTER_SECONDS)
    _calls.append(now)


@book.job(
    retry=Retry(3, delay=1, factor=2, jitter=0.2),
    timeout=30,
    lease=20,
    group=Group(window=2, max_hold=5, max_size=50),
)
async def sync_page(run: Run, items: list[PageChanged]) -> dict[str, int]:
    """Send the newest state of a page to the index once, however many changes it had."""
    _take_call()
    luck = zlib.crc32(items[0].path.encode())
    await asyncio.sleep(ANSWER_SECONDS_MIN + ANSWER_SECONDS_SPREAD * (luck % 101) / 100)
    # One page in two hundred meets a broken index at its first attempt: enough to see a retry.
    if run.attempt == 1 and luck % 200 == 0:
        raise IndexDown(f"502 from https://indexer:demo-password@index.example/{items[0].path}")
    return {"changes": len(items)}


_arrived = insert(cast(Table, Page.__table__))
_counted = _arrived.on_conflict_do_update(
    index_elements=["path"],
    set_={"changes": Page.changes + 1, "changed_at": _arrived.excluded.changed_at},
)


def page_changed(session: Session, change: PageChanged) -> None:
    """One business transaction: the page's row and its job's item, together or not at all."""
    session.execute(_counted, {"path": change.path, "changes": 1, "changed_at": change.at})
    sync_page.enqueue(session, change, group_key=change.path, subject=change.path)
