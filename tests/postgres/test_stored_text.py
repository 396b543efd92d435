"""Texts that PostgreSQL stores as they are, and those that it refuses."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest

from leasebook.domain import change
from leasebook.domain.commands import Enqueue
from leasebook.domain.job import JobSpec
from leasebook.infra.caller_ports import Alike, Order
from leasebook.infra.ports import DataRefused, Evidence
from leasebook.infra.postgres.accept_parts import BYTES_MAX, ROWS_MAX, parts
from leasebook.infra.postgres.rows import texts
from leasebook.infra.postgres.store import PostgresStore

from .test_concurrency import job_id


@pytest.mark.parametrize("bad", ["nul \0", "lone \ud800"])
def test_what_cannot_be_stored_is_refused_without_being_quoted(database_dsn: str, bad: str) -> None:
    store = PostgresStore(database_dsn)
    with pytest.raises(DataRefused) as refused, store.transaction() as tx:
        tx.append(
            [change(None, Enqueue(tx.at, JobSpec(job_id(1), "work", "{}", tx.at, label=bad)))]
        )
    assert bad not in refused.value.reason
    assert refused.value.__cause__ is None
    store.close()


def test_a_key_too_long_for_an_index_is_refused_and_no_outage(database_dsn: str) -> None:
    """Compression hides short repeats, so the name is of many different letters."""
    store = PostgresStore(database_dsn)
    queue = "".join(chr(0x4E00 + number) for number in range(9_000))
    with pytest.raises(DataRefused, match="54000"), store.transaction() as tx:
        tx.append([change(None, Enqueue(tx.at, JobSpec(job_id(1), "work", "{}", tx.at, queue)))])
    with store.transaction() as tx:
        assert tx.stream(job_id(1)) == ()
    store.close()


@pytest.mark.parametrize("text", ['"', "\\", '{a,"b"}', "null", "NULL", "", " ", "é\n\t'", "%s %%"])
def test_any_text_survives(database_dsn: str, text: str) -> None:
    store = PostgresStore(database_dsn)
    with store.transaction() as tx:
        spec = JobSpec(job_id(1), "work", "{}", tx.at, label=text, owner=text, subject=text or None)
        assert not tx.append([change(None, Enqueue(tx.at, spec))])
        job = tx.load([spec.id])[spec.id]
        assert job.spec == spec
        tx.record([Evidence("late_write_refused", "{}", None, text)])
    store.close()


def test_arrays_hold_what_was_put_into_them(database_dsn: str) -> None:
    odd = ['"', "\\", '\\"', "{", '","', "null", "NULL", "", " ", "é\n\t'", "\\\\0", None]
    arrays: list[list[str | None]] = [[], [""], [None], ['","'], odd[:-1], odd, [*odd, *odd]]
    with psycopg.connect(database_dsn) as connection:
        for each in arrays:
            kept = connection.execute("select %s::text::text[]", (texts(each),)).fetchone()
            assert kept == (each,)


@pytest.mark.parametrize("given", [["a\0b"], ["a\0b", "c"], ["\0", ""], ["a", None, "\0"]])
def test_a_nul_in_an_array_never_ends_a_text(database_dsn: str, given: list[str | None]) -> None:
    with psycopg.connect(database_dsn) as connection, pytest.raises(psycopg.DataError, match="NUL"):
        connection.execute("select %s::text::text[]", (texts(given),))


def test_parts_are_what_a_statement_can_carry() -> None:
    """By their number, by their size, and alone where one is larger than that."""
    args = ["0"] * (ROWS_MAX + 1) + ["x" * (BYTES_MAX // 2)] * 3 + ["x" * BYTES_MAX] + ["0"] * 3
    ids = [job_id(n) for n in range(len(args))]
    pattern = Order(JobSpec(job_id(0), "work", "{}", datetime(2026, 1, 1, tzinfo=UTC)))
    made = list(parts(Alike(pattern, ids, args, "{}"), range(len(args))))
    assert [place for part in made for place in part] == list(range(len(args)))
    assert max(map(len, made)) == ROWS_MAX
    for part in made:
        assert len(part) == 1 or sum(len(args[place]) for place in part) <= BYTES_MAX
    assert len(made) == 6
