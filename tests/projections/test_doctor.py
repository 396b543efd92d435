"""Each rule of the doctor finds its ailment, and finds nothing in a healthy database."""

from __future__ import annotations

import pytest
from attrs import evolve

from leasebook.projections.doctor import diagnose
from leasebook.projections.health import (
    Facts,
    Finding,
    SessionFacts,
    Severity,
    SlotFacts,
    TableFacts,
    Thresholds,
)

GB = 1024**3
TABLE = TableFacts("leasebook.jobs", 1_000, 100, 10**6, 10**6, 10**6, 10, 60.0, True)
SESSION = SessionFacts("session", 4711, "role app, psql", "idle in transaction", 90.0, True, 50)
SLOT = SlotFacts("standby", True, 100, 1000)
HEALTHY = Facts(
    tables=[TABLE], sessions=[evolve(SESSION, age=5.0)], slots=[SLOT], living_workers=2, due=3
)

AILMENTS = {
    "old_snapshot": evolve(HEALTHY, sessions=[SESSION]),
    "idle_in_transaction": evolve(HEALTHY, sessions=[evolve(SESSION, holds=None)]),
    "stuck_client": evolve(HEALTHY, sessions=[evolve(SESSION, stuck_writing=True, idle=False)]),
    "standby_snapshot": evolve(HEALTHY, sessions=[evolve(SESSION, kind="walsender")]),
    "prepared_transaction": evolve(
        HEALTHY, sessions=[evolve(SESSION, kind="prepared", pid=None, who="tx 1")]
    ),
    "slot_snapshot": evolve(HEALTHY, slots=[evolve(SLOT, active=False)]),
    "slot_wal": evolve(HEALTHY, slots=[evolve(SLOT, kept_bytes=20 * GB)]),
    "schema": evolve(HEALTHY, schema_problems=["index jobs_claim is missing"]),
    "standby": evolve(HEALTHY, in_recovery=True),
    "dead_rows": evolve(HEALTHY, tables=[evolve(TABLE, dead=20_000)]),
    "bloat": evolve(HEALTHY, tables=[evolve(TABLE, heap_bytes=GB)]),
    "stale_statistics": evolve(HEALTHY, tables=[evolve(TABLE, changed_since_analyze=60_000)]),
    "autovacuum_of_table": evolve(HEALTHY, tables=[evolve(TABLE, autovacuum=False)]),
    "autovacuum": evolve(HEALTHY, autovacuum=False),
    "autovacuum_naptime": evolve(HEALTHY, naptime=3600.0),
    "wraparound": evolve(HEALTHY, freeze_age=1_200_000_000),
    "notify_queue": evolve(HEALTHY, notify_usage=0.2),
    "silent_worker": evolve(HEALTHY, silent_workers=["w#1"]),
    "no_worker": evolve(HEALTHY, living_workers=0),
    "late": evolve(HEALTHY, oldest_due=1000.0),
    "growth": evolve(HEALTHY, events_per_day=10**8, bytes_per_event=200.0),
}


def test_a_healthy_database() -> None:
    assert diagnose(HEALTHY) == []
    assert diagnose(Facts()) == []


@pytest.mark.case("C23")
@pytest.mark.parametrize("code", AILMENTS)
def test_each_ailment_is_found_alone(code: str) -> None:
    (finding,) = diagnose(AILMENTS[code])
    assert finding.code == code
    assert finding.severity is not Severity.NOTE
    assert finding.seen
    assert finding.remedy


@pytest.mark.case("C23")
def test_an_old_snapshot_is_named_by_its_pid() -> None:
    (finding,) = diagnose(AILMENTS["old_snapshot"])
    assert "pid 4711" in finding.seen
    assert "pg_terminate_backend(4711)" in finding.remedy
    assert diagnose(AILMENTS["old_snapshot"], Thresholds(snapshot_seconds=100.0)) == []


def test_notes_are_no_ailments_and_the_worst_comes_first() -> None:
    notes = evolve(HEALTHY, held=3, aborted=2, hidden_sessions=2, events_per_day=10.0)
    facts = evolve(notes, due=5, living_workers=0)
    found: list[Finding] = diagnose(evolve(facts, naptime=3600.0))
    assert [each.severity for each in found] == [
        Severity.ERROR,
        Severity.WARNING,
        *(Severity.NOTE,) * 4,
    ]


def test_half_of_the_notify_queue_is_an_error_and_so_is_nearly_no_id_left() -> None:
    for facts in (evolve(HEALTHY, notify_usage=0.6), evolve(HEALTHY, freeze_age=1_600_000_000)):
        assert [each.severity for each in diagnose(facts)] == [Severity.ERROR]


def test_an_invalid_index_is_built_anew() -> None:
    (finding,) = diagnose(evolve(HEALTHY, schema_problems=["index x is wrong: … (invalid)"]))
    assert "reindex" in finding.remedy
