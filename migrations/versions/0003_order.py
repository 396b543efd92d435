"""Order, effects and aborts, added to a queue that is in use."""

from __future__ import annotations

from alembic import op

from leasebook.migrations.script import make_index, run_steps

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    context = op.get_context()
    run_steps(context, "0003_order.sql")
    make_index(
        context,
        "jobs_ordering_key",
        "create index {concurrently} jobs_ordering_key on @schema@.jobs (ordering_key, seq)"
        " where ordering_key is not null and (not held or on_hold is null)",
    )
    make_index(
        context,
        "jobs_running_key",
        "create index {concurrently} jobs_running_key on @schema@.jobs (ordering_key)"
        " where ordering_key is not null and state = 'leased'",
    )
    make_index(
        context,
        "jobs_blocked",
        "create index {concurrently} jobs_blocked on @schema@.jobs (blocked_by)"
        " where blocked_by is not null",
    )
    make_index(
        context,
        "jobs_after",
        "create index {concurrently} jobs_after on @schema@.jobs (after) where after is not null",
    )
    make_index(
        context,
        "group_inbox_ordering_key",
        "create index {concurrently} group_inbox_ordering_key on @schema@.group_inbox"
        " (ordering_key, sequence) where ordering_key is not null",
    )
