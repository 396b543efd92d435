"""The producer's statements as files that a reviewer reads.

`LEASEBOOK_UPDATE_GOLDEN=1 pytest tests/postgres/test_enqueue_statements.py` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import enqueue

GOLDEN = Path(__file__).parent / "golden"
STATEMENTS = {
    "enqueue_accept_jobs": enqueue.accept_jobs(Schema("leasebook")),
    "enqueue_accept_items": enqueue.accept_items(Schema("leasebook")),
}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_the_golden_file_is_the_statement(name: str) -> None:
    path, text = GOLDEN / f"{name}.sql", STATEMENTS[name].strip() + "\n"
    if os.environ.get("LEASEBOOK_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("build", [enqueue.accept_jobs, enqueue.accept_items])
def test_only_the_schema_differs_and_it_is_quoted(build: object) -> None:
    assert callable(build)
    odd = str(build(Schema('Jobs-"x"')))
    assert odd.replace('"Jobs-""x"""."', '"leasebook"."') == build(Schema("leasebook"))


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_a_producer_never_notifies(name: str) -> None:
    assert "notify" not in STATEMENTS[name]
