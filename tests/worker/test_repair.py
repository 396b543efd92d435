"""The claim table is damaged and mended again and again while workers go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from uuid import UUID

import pytest

from leasebook.infra.app.rebuild import repair, verify
from leasebook.infra.postgres.claim_table import PostgresClaimTable
from tests.support.yard import Yard, identity
from tests.worker.app import quick

ROUNDS = 12
JOBS = 40
CHUNK_EVENTS = 50

#: Some jobs lose their row, and some get one that nobody would claim before an hour has passed.
CHOSEN = "select id from leasebook.jobs where state = 'queued' limit 10 for update skip locked"
DAMAGE = (
    f"delete from leasebook.jobs where id in ({CHOSEN})",
    "update leasebook.jobs set priority = 0, args = '[99]', due_at = due_at + interval '1 hour'"
    f" where id in ({CHOSEN})",
)

#: A repair that is killed between two of its chunks.
REPAIR_AND_DIE = """
import os, signal, sys
from leasebook.infra.app.rebuild import repair
from leasebook.infra.postgres.claim_table import PostgresClaimTable
def told(events, total):
    os.kill(os.getpid(), signal.SIGKILL)
list(repair(PostgresClaimTable(sys.argv[1], chunk_events=50), told))
"""


@pytest.mark.acceptance("E11", "I13")
@pytest.mark.case("C56")
@pytest.mark.fault
@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_while_rows_are_mended(yard: Yard) -> None:
    """A row only ever comes back as its stream has it: no job runs that would not have run."""
    receipts: list[UUID] = []
    yard.worker("--concurrency", "4")
    yard.worker("--concurrency", "4")
    mended = 0
    with closing(PostgresClaimTable(yard.dsn, chunk_events=CHUNK_EVENTS)) as table:
        for number in range(ROUNDS):
            with yard.caller() as caller:
                made = quick.enqueue_many(caller, range(JOBS))
            receipts += [identity(each) for each in made]
            for statement in DAMAGE:
                yard.sql(statement)
            if number == ROUNDS // 2:
                killed(yard.dsn)
            found = list(repair(table))
            mended += sum(each.left is None for each in found)
        assert mended > 0, "nothing was damaged"
        outcomes = yard.all_over(receipts)
        assert list(verify(table)) == []
    assert outcomes == Counter({"done": len(receipts)})
    begun = Counter(each.job_id for each in yard.effects())
    assert begun == Counter(receipts), "each handler began once"
    ((wrong,),) = yard.sql(
        "select count(*) from leasebook.job_events"
        " where kind = 'completed.v1' and data::text like '%99%'"
    )
    assert wrong == 0, "what is run is what the log says"
    assert yard.rows() == 0


def killed(dsn: str) -> None:
    """A repair that does not come to its end."""
    search = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-c", REPAIR_AND_DIE, dsn],
        env={**os.environ, "PYTHONPATH": search},
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL
