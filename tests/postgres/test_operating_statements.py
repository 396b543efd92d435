"""The statements of monitoring, import and doctor as files that a reviewer reads.

`LEASEBOOK_UPDATE_GOLDEN=1 pytest tests/postgres/test_operating_statements.py` writes them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from leasebook.infra.postgres.schema.name import Schema
from leasebook.infra.postgres.statements import depth, doctor, importing, subjects
from leasebook.infra.postgres.statements.importing import OldNames

GOLDEN = Path(__file__).parent / "golden"
OLD = OldNames(
    "public",
    "old_queue",
    (("id", "bigint"), ("part", "text")),
    ("made_at",),
    ("task", "args"),
    "state = 'new'",
    "state = 'done'",
)

OF_SCHEMA: dict[str, Callable[[Schema], str]] = {
    "depth_due_again": depth.due_again,
    "depth_seconds_left": depth.seconds_left,
    "depth_tallies": depth.tallies,
    "doctor_aborted": doctor.aborted,
    "doctor_growth": doctor.growth,
    "doctor_queue": doctor.queue,
    "doctor_workers": doctor.workers,
    "import_claim": importing.claim,
    "import_evidence": importing.evidence,
    "import_survey": lambda schema: importing.survey(schema, OLD),
    "subjects_standing": subjects.standing,
}
PLAIN = {
    "depth_unbound": depth.unbound(),
    "doctor_server": doctor.server(),
    "doctor_sessions": doctor.sessions(),
    "doctor_slots": doctor.slots(),
    "doctor_tables": doctor.tables(),
    "import_alone": importing.alone(),
    "import_columns": importing.columns(),
    "import_find": importing.find(),
    "import_finished": importing.finished(OLD),
    "import_guard": ";\n".join(
        importing.guard(Schema("leasebook"), OLD, "The 'hint'.", partitioned=False)
    ),
    "import_guarded": importing.guarded(),
    "import_lock": importing.lock(OLD),
    "import_present": importing.present(OLD),
    "import_tables": importing.tables(),
    "import_unguard": importing.unguard(OLD),
    "import_writers": importing.writers(),
}


def rendered() -> dict[str, str]:
    return {name: build(Schema("leasebook")) for name, build in OF_SCHEMA.items()} | PLAIN


@pytest.mark.parametrize("name", sorted(OF_SCHEMA | PLAIN))
def test_the_golden_file_is_the_statement(name: str) -> None:
    path, text = GOLDEN / f"{name}.sql", rendered()[name].strip() + "\n"
    if os.environ.get("LEASEBOOK_UPDATE_GOLDEN"):
        path.write_text(text, "utf-8")
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize("name", sorted(OF_SCHEMA))
def test_only_the_schema_differs_and_it_is_quoted(name: str) -> None:
    build = OF_SCHEMA[name]
    odd = build(Schema('Jobs-"x"'))
    assert odd.replace('"Jobs-""x"""."', '"leasebook"."') == build(Schema("leasebook"))


@pytest.mark.acceptance("A06")
@pytest.mark.parametrize("name", [name for name in PLAIN if name.startswith("import_")])
def test_nothing_writes_to_the_old_table(name: str) -> None:
    text = re.sub(r"'[^']*'|for update of t skip locked|insert or update on", "", PLAIN[name])
    assert not re.search(r"\b(insert|update|delete|truncate|merge)\b", text)
