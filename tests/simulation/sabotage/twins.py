"""Every planted bug by name.  The simulator must catch each one of them, and nothing without."""

from __future__ import annotations

from collections.abc import Callable

from . import effects, rules, stores, workers
from .rules import Planted

#: Each with the faults that bring it out, so that few worlds are enough.
TWINS: dict[Callable[[], Planted], tuple[str, ...]] = {
    rules.no_fencing: ("database clock jumped", "handler slow past its lease"),
    rules.token_resets: (),
    rules.expiry_is_free: ("handler past its time-out",),
    rules.retry_ignores_budget: ("handler failed",),
    rules.renews_past_time_out: (),
    rules.runs_what_expired: (),
    rules.suspects_together: ("handler killed its worker",),
    rules.aborts_are_forgotten: ("worker stopped", "handler stubborn"),
    stores.projection_first: ("cut before commit",),
    stores.append_without_compare: ("database clock jumped", "handler slow past its lease"),
    stores.group_without_key_lock: ("slow statement",),
    stores.dead_go_on_leasing: ("heart frozen",),
    stores.enqueue_beside_the_transaction: ("transaction rolled back",),
    stores.requests_are_forgotten: ("answer lost",),
    stores.unique_keys_are_not_locked: (),
    workers.sweep_trusts_an_old_read: (
        "heart frozen",
        "handler slow past its lease",
        "slow statement",
    ),
    workers.death_by_timestamps: ("outage",),
    workers.collector_in_two_transactions: ("cut at statement",),
    workers.blind_redo: ("database clock jumped", "handler slow past its lease"),
    workers.late_is_taken_for_recorded: ("database clock jumped", "handler slow past its lease"),
    workers.reports_lost_in_an_outage: ("cut at statement",),
    workers.lost_tick_is_forgotten: ("answer lost",),
    workers.lost_after_leased: (
        "database clock jumped",
        "handler slow past its lease",
        "cut at statement",
    ),
    workers.refused_batch_fails_all: ("handler result refused by the store", "slow statement"),
    workers.late_report_hides_the_new_run: (
        "database clock jumped",
        "handler slow past its lease",
        "handler stubborn",
    ),
    workers.trusts_the_bell: ("wake-up lost",),
    workers.refused_inbox_stops_the_tick: ("inbox refused by the store",),
    effects.begun_before_the_commit: ("cut before commit",),
    effects.uncertain_is_released_on_retry: ("effect answer lost",),
    effects.effects_without_fencing: ("database clock jumped", "handler slow past its lease"),
}
