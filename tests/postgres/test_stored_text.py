"""Texts that PostgreSQL stores as they are, and those that it refuses."""

from __future__ import annotations

import pytest

from leasebook.domain import change
from leasebook.domain.commands import Enqueue
from leasebook.domain.job import JobSpec
from leasebook.infra.ports import DataRefused, Evidence
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
