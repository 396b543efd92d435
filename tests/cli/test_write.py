"""migrate, check-schema and enqueue."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

from tests.cli.conftest import Leasebook

MAIL = ("enqueue", "shop:book", "send_mail", '{"to": "ada"}')


def test_migrate_and_check_schema(leasebook: Leasebook, empty_database_dsn: str) -> None:
    env = {"LEASEBOOK_DSN": empty_database_dsn, "LEASEBOOK_SCHEMA": "Jobs-x"}
    missing = leasebook("check-schema", env=env)
    assert missing.code == 1
    assert 'table "Jobs-x"."jobs" is missing' in missing.out
    told = leasebook("check-schema", "--json", env=env)
    assert (told.code, told.document["complete"]) == (1, False)
    assert len(told.document["missing"]) == len(missing.out.splitlines())
    assert leasebook("migrate", env=env).out == 'schema "Jobs-x" is up to date\n'
    again = leasebook("migrate", "--json", env=env)
    assert again.document == {"schema": "Jobs-x", "migrated": True}
    assert leasebook("check-schema", env=env).out == 'schema "Jobs-x" is complete\n'
    complete = leasebook("check-schema", "--json", env=env)
    assert complete.document == {"schema": "Jobs-x", "complete": True, "missing": []}
    with psycopg.connect(empty_database_dsn) as connection:
        connection.execute('alter table "Jobs-x".jobs drop column label')
        connection.execute('drop index "Jobs-x".jobs_claim')
    changed = leasebook("check-schema", env=env)
    assert changed.code == 1
    assert 'column "Jobs-x"."jobs"."label" is missing' in changed.out
    assert "index jobs_claim" in changed.out


def test_migrate_sql_connects_to_nothing(leasebook: Leasebook, empty_database_dsn: str) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/x"
    answer = leasebook("migrate", "--sql", "--schema", "Jobs-x", "--dsn", nowhere)
    assert answer.code == 0
    assert 'create table "Jobs-x".job_events' in answer.out
    document = leasebook("migrate", "--sql", "--json", "--schema", "Jobs-x").document
    assert document["schema"] == "Jobs-x"
    with psycopg.connect(empty_database_dsn, autocommit=True) as connection:
        connection.execute(document["sql"])
    there = leasebook("check-schema", "--dsn", empty_database_dsn, "--schema", "Jobs-x")
    assert there.code == 0


def test_a_migration_that_is_refused(leasebook: Leasebook, empty_database_dsn: str) -> None:
    with psycopg.connect(empty_database_dsn) as connection:
        connection.execute("create schema leasebook")
        connection.execute("create table leasebook.jobs ()")
    answer = leasebook("migrate", "--dsn", empty_database_dsn)
    assert answer.code == 2
    assert "migrate into a schema of its own" in answer.err


def test_enqueue(leasebook: Leasebook, database_dsn: str) -> None:
    env = {"LEASEBOOK_DSN": database_dsn}
    first = leasebook(*MAIL, env=env)
    assert first.code == 0
    job = UUID(first.out.strip())
    options = ("--queue", "q2", "--priority", "9", "--delay", "100", "--label", "l")
    owned = ("--owner", "o", "--subject", "s", "--json")
    second = leasebook(*MAIL, *options, *owned, env=env).document
    assert second["item_id"] is None
    jobs = {each["id"]: each for each in leasebook("list", "--json", env=env).document}
    assert jobs[str(job)]["queue"] == "mail"
    assert jobs[str(job)]["label"] is None
    listed = jobs[second["id"]]
    names = ("queue", "priority", "label", "owner", "subject")
    assert [listed[name] for name in names] == ["q2", 9, "l", "o", "s"]
    assert listed["due_at"] > listed["enqueued_at"]


def test_enqueue_reads_standard_input(leasebook: Leasebook, database_dsn: str) -> None:
    words = ("enqueue", "shop:book", "send_mail", "-", "--dsn", database_dsn)
    assert leasebook(*words, stdin='{"to": "ada"}').code == 0
    assert leasebook(*words, stdin="{").code == 2


@pytest.mark.acceptance("P06")
def test_enqueue_a_job_of_a_type_that_aborts(leasebook: Leasebook, database_dsn: str) -> None:
    words = ("enqueue", "shop:book", "charge", '{"cents": 100}', "--dsn", database_dsn)
    assert leasebook(*words).code == 0
    with psycopg.connect(database_dsn) as connection:
        rows = connection.execute("select on_expired, format from leasebook.jobs").fetchall()
    assert rows == [("abort", 2)]


def test_enqueue_an_item(leasebook: Leasebook, database_dsn: str) -> None:
    words = ("enqueue", "shop:book", "sync_page", '{"path": "a.md"}', "--group-key", "a.md")
    answer = leasebook(*words, "--dsn", database_dsn)
    assert answer.out == "item 1\n"
    document = leasebook(*words, "--json", "--dsn", database_dsn).document
    assert document == {"id": None, "item_id": 2, "created": True}
    stats = leasebook("stats", "--json", "--dsn", database_dsn).document
    assert stats[0]["inbox"] == 2


def test_a_dsn_that_is_given_wins_over_the_books(leasebook: Leasebook, database_dsn: str) -> None:
    words = ("enqueue", "elsewhere:book", "hello", "--json")
    with open("elsewhere.py", "w", encoding="utf-8") as file:
        file.write(
            "from leasebook import Book\n"
            'book = Book("postgresql://nobody@127.0.0.1:1/x", schema="nosuch")\n'
            "@book.job\ndef hello() -> None: ...\n"
        )
    assert leasebook(*words).code == 3
    assert leasebook(*words, "--dsn", database_dsn).code == 1, "the schema is the book's"
    given = leasebook(*words, "--dsn", database_dsn, "--schema", "leasebook")
    assert given.code == 0
    UUID(given.document["id"])
