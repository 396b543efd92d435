"""Every statement of the worker's side as a file that a reviewer reads, and its manners.

`LEASEBOOK_UPDATE_GOLDEN=1 pytest tests/postgres/test_statements.py` writes the files anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.statements import (
    append,
    collect,
    frame,
    look,
    order,
    pick,
    runs,
    workers,
)

GOLDEN = Path(__file__).parent / "golden"

STATEMENTS: dict[str, Callable[[Schema], str]] = {
    "append_birth": append.birth,
    "append_complete": append.complete,
    "append_end": append.end,
    "append_further_events": append.further_events,
    "append_lease": append.lease,
    "append_lock": append.lock,
    "append_locked": append.locked,
    "append_update": append.update,
    "collect_lock_keys": collect.lock_keys,
    "collect_open_groups": collect.open_groups,
    "collect_take_items": collect.take_items,
    "look_outlook": look.outlook,
    "look_outlook_and_strangers": look.outlook_and_strangers,
    "look_rows": look.rows,
    "look_streams": look.streams,
    "order_ahead": order.ahead,
    "order_missing": order.missing,
    "order_mark_waited_for": order.mark_waited_for,
    "order_quiet_key": order.quiet_key,
    "order_stranded": order.stranded,
    "order_try_keys": order.try_keys,
    "order_waiting": order.waiting,
    "pick_claim": pick.claim,
    "pick_claim_among": pick.claim_among,
    "pick_claim_others": pick.claim_others,
    "pick_holds_leases": pick.holds_leases,
    "pick_leased_by": pick.leased_by,
    "pick_overdue": pick.overdue,
    "run_complete": runs.complete,
    "run_current": runs.current,
    "run_fence": partial(runs.hold, shared=True),
    "run_hold": partial(runs.hold, shared=False),
    "run_let_go_on": runs.let_go_on,
    "run_receive": runs.receive,
    "run_waiting": runs.waiting,
    "worker_beat": workers.beat,
    "worker_beats": workers.beats,
    "worker_bury": workers.bury,
    "worker_enroll": workers.enroll,
    "worker_is_alive": workers.is_alive,
    "worker_is_idle": workers.is_idle,
    "worker_leave": workers.leave,
    "worker_record": workers.record,
}

FRAMES = {
    "begin": frame.begin(Settings()),
    "begin_impatient": frame.begin_impatient(Settings(), 0.2),
    "begin_look": frame.begin_look(Settings()),
    "begin_snapshot": frame.begin_snapshot(Settings()),
    "standing": frame.standing(Settings()),
    "begin_window": frame.begin_window(Settings()),
    "begin_write": frame.begin_write(Settings()),
    "worker_end_stuck_listeners": workers.end_stuck_listeners(),
    "worker_lead": workers.lead(),
    "worker_ring": workers.ring(),
    "worker_ring_for": workers.ring_for(),
}


def rendered() -> dict[str, str]:
    schema = Schema("leasebook")
    return {name: build(schema) for name, build in STATEMENTS.items()} | FRAMES


@pytest.mark.parametrize("name", sorted(STATEMENTS | FRAMES))
def test_the_golden_file_is_the_statement(name: str) -> None:
    path, text = GOLDEN / f"{name}.sql", rendered()[name].strip() + "\n"
    if os.environ.get("LEASEBOOK_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_only_the_schema_differs_and_it_is_quoted(name: str) -> None:
    build = STATEMENTS[name]
    odd = build(Schema('Jobs-"x"'))
    assert odd.replace('"Jobs-""x"""."', '"leasebook"."') == build(Schema("leasebook"))


@pytest.mark.parametrize("name", sorted(STATEMENTS | FRAMES))
def test_keywords_are_lower_case_and_no_text_is_pasted_in(name: str) -> None:
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "", rendered()[name])
    assert text == text.lower()
    # Nothing between % and ( or % but the placeholders of psycopg.
    assert not re.search(r"%(?![(%])", text.replace("%%", ""))
