"""Windows of the log, added to a queue that is in use."""

from __future__ import annotations

from alembic import op

from leasebook.migrations.script import make_index, run_steps

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    context = op.get_context()
    run_steps(context, "0004_windows.sql")
    for table in ("job_events", "audit_log"):
        make_index(
            context,
            f"{table}_xid",
            f"create index {{concurrently}} {table}_xid on @schema@.{table} using brin (xid)"
            " with (pages_per_range = 32, autosummarize = on)",
        )
