"""Large arguments and many jobs: nothing on the way has a payload that grows with them."""

from __future__ import annotations

import psycopg
import pytest

from leasebook.infra.ports import Claim

from .ground import App, PageChanged

LARGE = 5_000_000
MANY = 10_000


@pytest.mark.case("C16")
def test_five_megabytes_and_ten_thousand_jobs_in_one_transaction(app: App) -> None:
    pages = [PageChanged(f"{number}.md") for number in range(MANY)]
    with psycopg.connect(app.dsn) as connection:
        large = app.publish.enqueue(connection, PageChanged("x" * LARGE), queue="large")
        receipts = app.publish.enqueue_many(connection, pages)
        items = app.sync_page.enqueue_many(
            connection, pages, group_key=lambda page: f"{len(page.path)}"
        )
    assert app.rows() == (MANY + 1, MANY + 1, MANY)
    assert len({receipt.id for receipt in receipts}) == MANY
    numbers = [item.item_id for item in items]
    assert numbers == sorted({number for number in numbers if number is not None})
    with app.book.store().transaction() as transaction:
        (job,) = transaction.claim(Claim(("large",), ("publish",), 10, 0))
    assert job.id == large.id
    assert len(job.spec.args) > LARGE
    with psycopg.connect(app.dsn) as connection:
        stored = connection.execute(
            "select args -> 'page' ->> 'path' from leasebook.jobs where queue = 'default'"
            " order by seq"
        ).fetchall()
    assert [row[0] for row in stored] == [page.path for page in pages]
