"""Ordering keys and parents as applications give them: through every caller, and refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
import pytest

from leasebook import Book, Group, InvalidValue, Receipt
from leasebook.domain.ordering import KEYS_MAX
from leasebook.infra.postgres.reader import PostgresReader

from .ground import KINDS, App, PageChanged, within

pytestmark = pytest.mark.acceptance("Q14")


@pytest.fixture
def serial(app: App) -> Any:
    """A job type whose groups of one key run one after another."""

    @app.book.job(group=Group(window=0, max_hold=0, serial=True))
    async def archive(items: list[int]) -> None: ...

    return archive


def blockers(app: App, receipts: Sequence[Receipt]) -> list[UUID | None]:
    """Behind whom each of these jobs waits."""
    reader = PostgresReader(app.dsn, app.schema)
    try:
        jobs = {job.id: job.blocked_by for job in reader.jobs(None, None, None, 1_000)}
    finally:
        reader.close()
    return [jobs[receipt.id] for receipt in receipts if receipt.id is not None]


@pytest.mark.parametrize("kind", KINDS)
async def test_many_jobs_wait_for_each_other_by_key(app: App, kind: str) -> None:
    anything: Any = app.anything

    def act(caller: Any) -> Any:
        def key(number: int) -> str | None:
            return None if number == 9 else f"key {number % 2}"

        return anything.enqueue_many(caller, [1, 2, 3, 9, 4, 5], ordering_key=key)

    one, two, three, nine, four, five = await within(kind, app.dsn, act)
    got = blockers(app, [one, two, three, nine, four, five])
    assert got == [None, None, one.id, None, two.id, three.id]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_after_another_and_one_of_a_key(app: App, kind: str) -> None:
    anything: Any = app.anything
    with psycopg.connect(app.dsn) as connection:
        first = anything.enqueue(connection, 1)

    def act(caller: Any) -> Any:
        return anything.enqueue(caller, 2, after=first, ordering_key="k")

    second = await within(kind, app.dsn, act)
    born: Any = app.book.log().stream(second.id)[0].event
    assert (born.spec.after, born.spec.ordering_key) == (first.id, "k")


def test_items_of_a_serial_type_are_in_the_order_of_their_key(app: App, serial: Any) -> None:
    with psycopg.connect(app.dsn) as connection:
        serial.enqueue_many(connection, [1, 2], group_key="k")
        rows = connection.execute(
            "select ordering_key, sequence is not null from leasebook.group_inbox"
        ).fetchall()
    assert rows == [("k", True)] * 2


def test_too_many_keys_are_refused_before_anything_is_written(app: App) -> None:
    anything: Any = app.anything
    with psycopg.connect(app.dsn) as connection:
        with pytest.raises(InvalidValue, match="501 different keys in one enqueue") as refused:
            anything.enqueue_many(connection, range(KEYS_MAX + 1), ordering_key=str)
        assert refused.value.field == "ordering_key"
        assert "at most 500 of them at a time, and commit in between" in str(refused.value)
        # The transaction goes on.
        anything.enqueue_many(connection, range(KEYS_MAX), ordering_key=str)
    assert app.rows() == (KEYS_MAX, KEYS_MAX, 0)


def test_what_has_no_place_in_an_order_is_refused(app: App, serial: Any) -> None:
    anything: Any = app.anything
    sync_page: Any = app.sync_page
    page = PageChanged("a.md")
    with psycopg.connect(app.dsn) as connection:
        item = serial.enqueue(connection, 1, group_key="k")
        with pytest.raises(InvalidValue, match=r"the receipt of an item.*Wait for jobs"):
            anything.enqueue(connection, 1, after=item)
        with pytest.raises(InvalidValue, match=r"is not there.*Enqueue that one first"):
            anything.enqueue(connection, 1, after=UUID(int=7))
        with pytest.raises(InvalidValue, match=r"Group\(serial=True\) puts the groups"):
            sync_page.enqueue(connection, page, group_key="k", ordering_key="o")
        with pytest.raises(InvalidValue, match=r"ordering_key.*blank"):
            anything.enqueue(connection, 1, ordering_key=" ")
    assert app.rows() == (0, 0, 1)


def test_callers_with_an_old_snapshot_share_a_key(app: App) -> None:
    """They write and read nothing of each other; numbers are drawn from a sequence."""
    anything: Any = app.anything
    with psycopg.connect(app.dsn) as one, psycopg.connect(app.dsn) as two:
        for caller in (one, two):
            caller.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            caller.execute("select count(*) from leasebook.jobs")
        later = anything.enqueue(two, 1, ordering_key="k")
        earlier = anything.enqueue(one, 2, ordering_key="k")
        with pytest.raises(InvalidValue, match="is not there"):
            anything.enqueue(one, 3, after=later)
        one.commit()
        two.commit()
    log = app.book.log()
    numbers = [log.stream(each.id)[0].event_id for each in (later, earlier) if each.id]
    assert numbers == sorted(numbers)


def test_a_type_says_what_its_held_jobs_mean_for_their_key() -> None:
    book = Book("postgresql://nobody@127.0.0.1:1/nothing", notify=False)
    with pytest.raises(InvalidValue, match='Give "block" or "skip"'):

        @book.job(on_hold="wait")  # type: ignore[call-overload, untyped-decorator]
        def work() -> None: ...
