"""The built-in job types of a book, called as a worker calls them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from leasebook import Book, Snooze
from leasebook.infra.app.errors import NameTaken
from tests.support.standing import fill


def test_a_book_has_them_once() -> None:
    book = Book("host=nowhere")
    built_in = book.maintenance(queue="upkeep")
    assert list(book.jobs) == ["leasebook.verify", "leasebook.repair", "leasebook.rebuild"]
    assert {each.queue for each in book.jobs.values()} == {"upkeep"}
    assert book.find("leasebook.rebuild") is built_in.rebuild
    with pytest.raises(NameTaken):
        book.maintenance()


def test_a_run_ends_between_chunks_when_its_worker_stops(database_dsn: str) -> None:
    """It spends no attempt, and the next one goes on or begins again."""
    fill(database_dsn)
    with Book(database_dsn) as book:
        book.maintenance()
        for job in book.jobs.values():
            for run in (
                SimpleNamespace(stopping=True, lost=False),
                SimpleNamespace(stopping=False, lost=True),
            ):
                with pytest.raises(Snooze):
                    job.handler(run)
            done = job.handler(SimpleNamespace(stopping=False, lost=False))
            assert done.get("rows", 0) == 0
