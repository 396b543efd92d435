"""Everything the queue of release 0.1 needs."""

from __future__ import annotations

from alembic import op

from leasebook.migrations.script import run_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_file(op.get_context(), "0001_queue.sql")
