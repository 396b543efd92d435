"""Callers beside each other: nobody's open transaction decides about another's enqueue."""

from __future__ import annotations

import psycopg
import pytest

from .ground import App, PageChanged

LEVELS = (psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ)


@pytest.mark.case("C37")
@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_an_open_enqueue_never_makes_another_fail_or_vanish(
    app: App, level: psycopg.IsolationLevel
) -> None:
    page = PageChanged("a.md")
    with psycopg.connect(app.dsn) as first, psycopg.connect(app.dsn) as second:
        for connection in (first, second):
            connection.isolation_level = level
            # The snapshot of REPEATABLE READ is taken here, before either has written.
            connection.execute("select count(*) from leasebook.jobs")
            connection.execute("set local lock_timeout = '2s'")
        app.publish.enqueue(first, page, subject="same")
        app.sync_page.enqueue(first, page, group_key="same")
        lost = app.publish.enqueue(second, page, subject="same")
        app.sync_page.enqueue(second, page, group_key="same")
        first.rollback()
        second.commit()
        # And the one that began first, with its snapshot of before, can still come.
        app.publish.enqueue(first, page, subject="same")
        first.commit()
    assert app.rows() == (2, 2, 1)
    assert lost.id is not None
    assert len(app.book.log().stream(lost.id)) == 1
