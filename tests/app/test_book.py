"""Which database a book uses, and what it shows of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from sqlalchemy import text

from leasebook import Book, InvalidValue
from leasebook.infra.app.where import chosen_dsn

from .ground import App

PARTS = {
    "LEASEBOOK_HOST": "db.example",
    "LEASEBOOK_PORT": "6432",
    "LEASEBOOK_DATABASE": "it's a \\shop",
    "LEASEBOOK_WORKER_PASSWORD": "s'e c\\ret",
}


@pytest.mark.parametrize(
    ("dsn", "environ", "chosen"),
    [
        ("argument", {"LEASEBOOK_DSN": "environment", **PARTS}, "argument"),
        (None, {"LEASEBOOK_DSN": "environment", **PARTS}, "environment"),
        (None, {"LEASEBOOK_DSN": ""}, None),
        (None, {"LEASEBOOK_WORKER_PASSWORD": "unused", "PGHOST": "owner.example"}, None),
    ],
)
def test_the_argument_wins_then_the_environment(
    dsn: str | None, environ: Mapping[str, str], chosen: str | None
) -> None:
    assert chosen_dsn(dsn, environ) == chosen


def test_parts_are_used_with_the_workers_role_only() -> None:
    dsn = chosen_dsn(None, {**PARTS, "PGUSER": "owner", "PGPASSWORD": "owner's"})
    assert dsn is not None
    assert conninfo_to_dict(dsn) == {
        "host": "db.example",
        "port": "6432",
        "dbname": "it's a \\shop",
        "user": "leasebook_worker",
        "password": "s'e c\\ret",
    }
    without = chosen_dsn(None, {"LEASEBOOK_HOST": "h", "LEASEBOOK_DATABASE": "d"})
    assert without is not None
    assert conninfo_to_dict(without) == {
        "host": "h",
        "dbname": "d",
        "user": "leasebook_worker",
        "password": "",
    }


@pytest.mark.parametrize("missing", ["LEASEBOOK_HOST", "LEASEBOOK_DATABASE"])
def test_half_an_address_is_refused(missing: str) -> None:
    with pytest.raises(InvalidValue, match=missing):
        chosen_dsn(None, {name: value for name, value in PARTS.items() if name != missing})


@pytest.mark.parametrize("dsn", ["", " "])
def test_an_empty_dsn_is_refused(dsn: str) -> None:
    with pytest.raises(InvalidValue, match="dsn"):
        chosen_dsn(dsn, {})


class FakeLease:
    """An embedded server that only counts."""

    dsn = "embedded"
    closed = 0

    def close(self) -> None:
        self.closed += 1


def test_the_embedded_server_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEASEBOOK_DSN", *PARTS):
        monkeypatch.delenv(name, raising=False)
    leases: list[FakeLease] = []

    def lease() -> FakeLease:
        leases.append(FakeLease())
        return leases[-1]

    monkeypatch.setattr("leasebook.infra.postgres.server.embedded_server", lease)
    with Book() as book:
        assert not leases
        assert book.dsn == book.dsn == "embedded"
        assert len(leases) == 1
    assert leases[0].closed == 1
    with Book("given") as book:
        assert book.dsn == "given"
    assert len(leases) == 1


def test_nothing_of_the_dsn_is_shown() -> None:
    book = Book("postgresql://user:hunter2@host/db?sslpassword=hunter3", schema="Jobs-x")
    assert "hunter" not in repr(book)
    assert "Jobs-x" in repr(book)


def test_a_book_can_be_pointed_elsewhere(app: App) -> None:
    book = Book("somewhere")
    book.configure(dsn=app.dsn, schema="other")
    assert (book.dsn, book.schema) == (app.dsn, "other")
    book.configure()
    assert (book.dsn, book.schema) == (app.dsn, "other")
    with pytest.raises(InvalidValue, match="schema"):
        book.configure(schema="pg_x")
    with pytest.raises(InvalidValue, match="schema"):
        Book(schema="")


def test_the_engine_is_a_plain_one(app: App) -> None:
    pairs = make_conninfo(app.dsn)
    for dsn in (app.dsn, pairs):
        engine = Book(dsn).engine()
        with engine.connect() as connection:
            assert connection.scalar(text("select 1")) == 1
        engine.dispose()


def test_migrate_and_migrate_again(app: App) -> None:
    app.book.configure(schema="second")
    app.book.migrate()
    app.book.migrate()
    assert App(app.dsn, "second").rows() == (0, 0, 0)


LOADED = """
import sys
import leasebook
assert not [name for name in sys.modules if name.startswith(("sqlalchemy", "psycopg", "cattrs"))]
leasebook.Book
heavy = ("sqlalchemy", "alembic", "psycopg")
print([name for name in heavy if name in sys.modules])
"""


def test_importing_is_light() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[]\n"
