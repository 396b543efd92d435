"""Old workers and a second importer at work while the import runs."""

from __future__ import annotations

import threading

import psycopg
import pytest

from leasebook.infra.app.importing import ImportReport
from leasebook.infra.app.old_rows import job_id

from .ground import Move

ROWS = 600
TAKE = """
delete from old_queue
 where id = (select id from old_queue where state = 'new' order by id desc
              limit 1 for update skip locked)
returning id
"""


@pytest.mark.acceptance("A06", "Q27")
def test_old_workers_that_take_and_delete_rows_lose_none(move: Move) -> None:
    move.say(
        "insert into old_queue (task, payload) select 'tidy', '{}' from generate_series(1, %s)",
        [ROWS],
    )
    done: set[int] = set()
    go_on = threading.Event()
    go_on.set()

    def old_worker() -> None:
        with psycopg.connect(move.dsn, options="-c search_path=public") as connection:
            while go_on.is_set() and (row := connection.execute(TAKE).fetchone()) is not None:
                connection.commit()
                done.add(row[0])

    workers = [threading.Thread(target=old_worker) for _ in range(2)]
    for worker in workers:
        worker.start()
    reports = [move.run(batch_rows=20)]
    go_on.clear()
    for worker in workers:
        worker.join()
    reports.append(move.run())
    assert reports[-1].complete
    imported = set(move.ids())
    assert len(imported) == sum(each.imported for each in reports)
    by_id = {number: job_id("public.old_queue", f'["{number}"]') for number in range(1, ROWS + 1)}
    lost = [number for number, job in by_id.items() if job not in imported and number not in done]
    assert lost == []
    assert imported <= set(by_id.values())


@pytest.mark.acceptance("Q27")
def test_two_importers_at_once_make_one_job_of_each_row(move: Move) -> None:
    move.say(
        "insert into old_queue (task, payload) select 'tidy', '{}' from generate_series(1, %s)",
        [ROWS],
    )
    barrier, reports = threading.Barrier(2), list[ImportReport]()

    def run() -> None:
        barrier.wait()
        reports.append(move.run(batch_rows=50))

    importers = [threading.Thread(target=run) for _ in range(2)]
    for importer in importers:
        importer.start()
    for importer in importers:
        importer.join()
    assert len(reports) == 2
    assert sum(each.imported for each in reports) == ROWS == len(set(move.ids()))
    # The other one's locks are waited for, not reported.
    assert all(each.complete for each in reports)
