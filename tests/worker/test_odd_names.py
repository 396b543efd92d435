"""Names of 48 to 70 bytes, mixed case, with dots, quotes and wide letters, all the way through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from leasebook.infra.postgres.schema.migrate import migrate
from leasebook.infra.postgres.wakeup import PostgresWakeup
from tests.support.source import TOP
from tests.support.workers import eventually
from tests.support.yard import Yard
from tests.worker.odd_names import GROUPED, NAMES, PLAIN, book

APP = "tests.worker.odd_names:book"
#: Nobody finds a job by polling so seldom within a test.
LONG_POLL = ("--poll", "600")
PREFIX = "X-é." * 12


def leasebook(dsn: str, *words: str, schema: str = "leasebook") -> Any:
    """What a command prints with ``--json``."""
    done = subprocess.run(
        [sys.executable, "-m", "leasebook.infra.cli", *words, "--json"],
        env={
            **os.environ,
            "LEASEBOOK_DSN": dsn,
            "LEASEBOOK_SCHEMA": schema,
            "PYTHONPATH": str(TOP),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return json.loads(done.stdout)


@pytest.mark.case("C21")
def test_c21_every_name_is_enqueued_heard_of_and_run(yard: Yard) -> None:
    """The worker hears of each job, for it polls far too seldom to find any by itself."""
    assert {len(name.encode()) for name in NAMES} >= {48, 63, 64, 70}
    queues = [word for name in NAMES for word in ("--queue", name)]
    worker = yard.worker(*queues, *LONG_POLL, app=APP)
    book.configure(dsn=yard.dsn)
    with book:
        for name, plain, group in zip(NAMES, PLAIN, GROUPED, strict=True):
            with yard.caller() as caller:
                receipt = plain.enqueue(caller, 1, subject=name)
                group.enqueue(caller, 1, group_key=name)
            job = yard.over(receipt)
            assert job.outcome == "done"
            assert (job.spec.name, job.spec.queue, job.spec.subject) == (name, name, name)
    done = "select count(*) from leasebook.job_events where kind = 'completed.v1'"
    eventually(lambda: yard.sql(done) == [(len(NAMES) * 2,)], "every group runs too")
    assert worker.stop() == 0


@pytest.mark.case("C21")
def test_c21_commands_tell_long_names_apart(yard: Yard) -> None:
    told = leasebook(yard.dsn, "enqueue", APP, NAMES[-2], '{"n": 1}')
    assert told["id"]
    with yard.caller() as caller:
        for name, plain in zip(NAMES, PLAIN, strict=True):
            if name != NAMES[-2]:
                plain.enqueue(caller, 1)
    stats = leasebook(yard.dsn, "stats")
    assert {each["queue"]: each["due"] for each in stats} == dict.fromkeys(NAMES, 1)
    for name, option in ((NAMES[-2], "--queue"), (NAMES[1], "--name"), (NAMES[4], "--queue")):
        (listed,) = leasebook(yard.dsn, "list", option, name)
        assert (listed["queue"], listed["name"]) == (name, name)


@pytest.mark.case("C21")
def test_c21_schemas_that_differ_in_the_last_byte_have_bells_of_their_own(
    empty_database_dsn: str,
) -> None:
    """63 bytes, the most that PostgreSQL has for a name."""
    schemas = [f"{PREFIX}zz{end}" for end in "ab"]
    assert {len(schema.encode()) for schema in schemas} == {63}
    for schema in schemas:
        migrate(empty_database_dsn, schema)
        leasebook(empty_database_dsn, "check-schema", schema=schema)
    one, two = (PostgresWakeup(empty_database_dsn, schema) for schema in schemas)
    assert one.wait(30.0)
    assert two.wait(30.0)
    two.ring()
    assert two.wait(30.0)
    assert not one.wait(0.0)
    one.close()
    two.close()
