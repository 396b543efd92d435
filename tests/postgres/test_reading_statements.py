"""The statements of the command line as files that a reviewer reads.

`LEASEBOOK_UPDATE_GOLDEN=1 pytest tests/postgres/test_reading_statements.py` writes them anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import (
    reading,
    rebuilding,
    replaying,
    restoring,
    shadow,
    windows,
)

GOLDEN = Path(__file__).parent / "golden"
STATEMENTS: dict[str, Callable[[Schema], str]] = {
    "reading_counts": reading.counts,
    "reading_jobs": reading.jobs,
    "reading_log": reading.log,
    "reading_rows": reading.rows,
    "reading_stats": reading.stats,
    "replaying_audit": replaying.audit,
    "replaying_events": replaying.events,
    "rebuilding_awaited": rebuilding.awaited,
    "rebuilding_chunk_end": rebuilding.chunk_end,
    "rebuilding_drop": rebuilding.drop,
    "rebuilding_events": rebuilding.events,
    "rebuilding_lock": rebuilding.lock,
    "rebuilding_put": rebuilding.put,
    "rebuilding_rows": rebuilding.rows,
    "rebuilding_rows_of": rebuilding.rows_of,
    "rebuilding_tell_blockers": rebuilding.tell_blockers,
    "restoring_claim": restoring.claim,
    "restoring_copy_audit": restoring.copy_audit,
    "restoring_copy_events": restoring.copy_events,
    "restoring_is_used": restoring.is_used,
    "shadow_clear": shadow.clear,
    "shadow_count": shadow.count,
    "shadow_holders": shadow.holders,
    "shadow_in_the_way": shadow.in_the_way,
    "shadow_indexing": shadow.indexing,
    "shadow_keep_others_out": shadow.keep_others_out,
    "shadow_making": shadow.making,
    "shadow_swapping": shadow.swapping,
    "shadow_tell_all": shadow.tell_all,
    "shadow_tell_awaited": shadow.tell_awaited,
    "shadow_unlike": shadow.unlike,
    "windows_adopt": windows.adopt,
    "windows_audit": windows.audit,
    "windows_checkpoint": windows.checkpoint,
    "windows_drop_checkpoint": windows.drop_checkpoint,
    "windows_events": windows.events,
    "windows_here": windows.here,
    "windows_move_checkpoint": windows.move_checkpoint,
    "windows_summarize": windows.summarize,
    "windows_touched": windows.touched,
}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_the_golden_file_is_the_statement(name: str) -> None:
    path, text = GOLDEN / f"{name}.sql", STATEMENTS[name](Schema()).strip() + "\n"
    if os.environ.get("LEASEBOOK_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_only_the_schema_differs_and_it_is_quoted(name: str) -> None:
    odd = STATEMENTS[name](Schema('Jobs-"x"'))
    assert odd.replace('"Jobs-""x"""."', '"leasebook"."') == STATEMENTS[name](Schema())
