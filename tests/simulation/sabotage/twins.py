"""Every planted bug by name.  The simulator must catch each one of them, and nothing without."""

from __future__ import annotations

from collections.abc import Callable

from . import rules, stores, workers
from .rules import Planted

TWINS: tuple[Callable[[], Planted], ...] = (
    rules.no_fencing,
    rules.token_resets,
    rules.expiry_is_free,
    rules.retry_ignores_budget,
    rules.renews_past_time_out,
    rules.runs_what_expired,
    rules.suspects_together,
    stores.projection_first,
    stores.append_without_compare,
    stores.group_without_key_lock,
    stores.dead_go_on_leasing,
    stores.enqueue_beside_the_transaction,
    workers.sweep_trusts_an_old_read,
    workers.death_by_timestamps,
    workers.collector_in_two_transactions,
    workers.blind_redo,
    workers.late_is_taken_for_recorded,
    workers.reports_lost_in_an_outage,
    workers.lost_tick_is_forgotten,
    workers.lost_after_leased,
    workers.trusts_the_bell,
)
