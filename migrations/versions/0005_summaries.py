"""How jobs ended, and pruning of their streams, added to a queue that is in use."""

from __future__ import annotations

from alembic import op

from leasebook.migrations.script import run_steps

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_steps(op.get_context(), "0005_summaries.sql")
