"""A birth by SQL is the birth that the domain decides: same event, same job, same row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from leasebook.domain import JobSpec, Policy, State, decide, fold
from leasebook.domain.commands import Item, OpenGroup
from leasebook.domain.errors import InvalidValue
from leasebook.domain.values import OnExhausted, OnExpired
from leasebook.infra.app.ids import new_id
from leasebook.infra.caller_ports import Order
from leasebook.infra.postgres.accept_parts import BYTES_MAX, birth
from leasebook.infra.postgres.callers import accept
from leasebook.infra.postgres.schema.name import Schema
from leasebook.projections.row import from_row, to_row

from .ground import NOTHING, App, PageChanged

SCHEMA = Schema()
SOON = datetime(2100, 2, 28, 23, 59, 59, 999_999, UTC)
PAST = datetime(2001, 1, 1, tzinfo=UTC)
LATE = datetime(2200, 1, 1, tzinfo=UTC)


def spec(**given: Any) -> JobSpec:
    """A spec with everything left out but what is given."""
    plain: dict[str, Any] = {"id": new_id(), "name": "n", "args": "{}", "enqueued_at": PAST}
    return JobSpec(**{**plain, **given})


ORDERS: Mapping[str, Callable[[], Order]] = {
    "plain": lambda: Order(spec()),
    "full": lambda: Order(
        spec(
            name="na\\me\"'%s",
            args='{"a":[1,2.5,null,true,"ä\U0001f600\\u0001\\n/"],"args":{"args":1},"queue":"no"}',
            queue="q" * 128,
            priority=9,
            policy=Policy(0, 0.1, 1e-3, OnExhausted.DROP),
            label="lä%bel",
            owner="o'wner",
            subject='{"s":1}',
            expires_at=LATE,
        )
    ),
    "run_at": lambda: Order(spec(), run_at=SOON),
    "run_at in another zone": lambda: Order(
        spec(), run_at=SOON.astimezone(datetime.now(UTC).astimezone().tzinfo)
    ),
    "run_at in the past": lambda: Order(spec(), run_at=PAST),
    "delay": lambda: Order(spec(), delay=1.0000005),
    "small delay": lambda: Order(spec(), delay=0.1 + 0.2),
    "long delay": lambda: Order(spec(), delay=1e9),
    "both": lambda: Order(spec(), run_at=SOON, delay=5.0),
    "aborts": lambda: Order(spec(policy=Policy(on_expired=OnExpired.ABORT))),
    "numbers": lambda: Order(spec(args='{"n":9007199254740992,"f":1e-07,"g":0.1}', priority=0)),
}


@pytest.fixture
def producer(database_dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A caller's connection whose session is set up in an odd way."""
    with psycopg.connect(
        database_dsn, options="-c datestyle=German -c timezone=America/St_Johns"
    ) as connection:
        yield connection


@pytest.mark.acceptance("E04")
@pytest.mark.parametrize("name", ORDERS)
def test_birth_by_sql_is_birth_by_decision(
    app: App, producer: psycopg.Connection[Any], name: str
) -> None:
    order = ORDERS[name]()
    accept(SCHEMA, producer, [order])
    producer.commit()
    stream = app.book.log().stream(order.spec.id)
    (recorded,) = stream
    job = fold(each.event for each in stream)
    assert job is not None
    (event,) = decide(None, birth(order, recorded.at))
    assert recorded.event == event
    assert fold([event]) == job
    row = to_row(job)
    assert row is not None
    assert from_row(*row) == job
    with app.book.store().transaction() as transaction:
        assert transaction.load([order.spec.id]) == {order.spec.id: job}
    assert kept(app.dsn, order.spec.id) == expected(row, recorded.event_id)


def kept(dsn: str, job_id: UUID) -> dict[str, Any]:
    """The stored row, with JSON as text."""
    with (
        psycopg.connect(dsn, options="-c timezone=UTC") as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        cursor.execute(
            "select j.*, args::text as args, items::text as items from leasebook.jobs as j"
            " where id = %s",
            (job_id,),
        )
        row = cursor.fetchone()
    assert row is not None
    return row


def expected(row: Any, event_id: int) -> dict[str, Any]:
    """The row that the projection gives, with its sequence; nobody waits for a new job.

    No items and no effects are nulls, as in rows that workers write.
    """
    values = {**row[0]._asdict(), **row[1]._asdict()}
    return {**values, "items": None, "effects": None, "seq": event_id, "has_waiter": False}


def test_a_bulk_is_numbered_in_its_order(app: App, producer: psycopg.Connection[Any]) -> None:
    orders = [Order(spec(args=f'{{"n":{number}}}')) for number in range(500)]
    receipts = accept(SCHEMA, producer, orders)
    producer.commit()
    assert isinstance(receipts, tuple)
    assert [receipt.id for receipt in receipts] == [order.spec.id for order in orders]
    with psycopg.connect(app.dsn) as connection:
        rows = connection.execute("select id from leasebook.jobs order by seq").fetchall()
        wrong = connection.execute(
            "select count(*) from leasebook.jobs as j join leasebook.job_events as e"
            " on e.job_id = j.id where e.event_id <> j.seq or e.at <> j.at"
        ).fetchone()
    assert [row[0] for row in rows] == [order.spec.id for order in orders]
    assert wrong == (0,)


def test_the_domain_says_no_and_nothing_is_written(
    app: App, producer: psycopg.Connection[Any]
) -> None:
    stale = Order(spec(expires_at=PAST + timedelta(days=1)))
    tight = Order(spec(expires_at=LATE), run_at=LATE)
    for bad in (stale, tight):
        with pytest.raises(InvalidValue, match="expires_at"):
            accept(SCHEMA, producer, [Order(spec()), bad])
    producer.commit()
    assert app.rows() == NOTHING


def test_a_refusal_in_a_later_part_takes_the_earlier_ones_back(
    app: App, producer: psycopg.Connection[Any]
) -> None:
    big = '{"a":"' + "x" * (BYTES_MAX // 2) + '"}'
    orders = [Order(spec(args=big)), Order(spec(args=big)), Order(spec(expires_at=PAST))]
    with pytest.raises(InvalidValue, match="expires_at"):
        accept(SCHEMA, producer, orders)
    producer.commit()
    assert app.rows() == NOTHING
    accept(SCHEMA, producer, orders[:2])
    producer.commit()
    assert app.rows() == (2, 2, 0)


def test_an_item_opens_the_group_that_the_domain_would(
    app: App, producer: psycopg.Connection[Any]
) -> None:
    app.sync_page.enqueue(
        producer, PageChanged("a.md"), group_key="a.md", owner="ada", label="l", priority=2
    )
    producer.commit()
    store = app.book.store()
    with store.transaction() as transaction:
        (key,) = transaction.collectable(10)
        (arrival,) = key.arrivals
        assert key.open_group is None
        (born, joined) = decide(
            None,
            OpenGroup(transaction.at, arrival.spec, (arrival.item,)),
        )
    job = fold([born, joined])
    assert job is not None
    assert job.state is State.GROUPED
    assert job.spec.group == app.sync_page.group
    assert (job.spec.owner, job.spec.label, job.spec.priority) == ("ada", "l", 2)
    assert isinstance(arrival.item, Item)
    assert '"path":"a.md"' in arrival.item.args
