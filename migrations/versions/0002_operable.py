"""Keys, monitoring and what else release 0.2 needs, added to a queue that is in use."""

from __future__ import annotations

from alembic import op

from leasebook.migrations.script import make_index, run_steps

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    context = op.get_context()
    run_steps(context, "0002_operable.sql")
    make_index(
        context,
        "jobs_unique_key",
        "create unique index {concurrently} jobs_unique_key on @schema@.jobs (queue, unique_key)"
        " where unique_key is not null",
    )
    make_index(
        context,
        "jobs_subject",
        "create index {concurrently} jobs_subject on @schema@.jobs (subject)"
        " where subject is not null",
    )
    make_index(
        context,
        "group_inbox_subject",
        "create index {concurrently} group_inbox_subject on @schema@.group_inbox (subject)"
        " where subject is not null",
    )
