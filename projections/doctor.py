"""What ails the database under a queue: facts in, findings out.

A queue lives on quick vacuum: every job leaves dead rows behind, and whatever keeps vacuum from
taking them away makes every later claim read them again.  The facts are gathered by somebody else;
here are the rules, each a function of the facts that says what was seen and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from .health import Facts, Finding, Severity, TableFacts, Thresholds
from .wording import count, duration

#: PostgreSQL refuses commands when a transaction id is older than about this.
WRAPAROUND = 2_000_000_000


def diagnose(facts: Facts, limits: Thresholds | None = None) -> list[Finding]:
    """Every finding, the worst first."""
    chosen = limits or Thresholds()
    rules = (_schema, _sessions, _slots, _tables, _autovacuum, _ages, _notify, _workers, _queue)
    found = [finding for rule in rules for finding in rule(facts, chosen)]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))


def _error(code: str, seen: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, code, seen, remedy)


def _warning(code: str, seen: str, remedy: str) -> Finding:
    return Finding(Severity.WARNING, code, seen, remedy)


def _note(code: str, seen: str, remedy: str) -> Finding:
    return Finding(Severity.NOTE, code, seen, remedy)


def _span(seconds: float) -> str:
    return duration(timedelta(seconds=seconds))


def _size(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GB"


def _schema(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for problem in facts.schema_problems:
        # An index whose building was cut off is there, kept up to date, and of no use to anybody.
        half = "(invalid)" in problem
        remedy = "`reindex index concurrently` it" if half else "`leasebook migrate`"
        yield _error("schema", problem, remedy)
    if facts.in_recovery:
        yield _error("standby", "this server is a standby", "name the primary in the DSN")


def _sessions(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for each in facts.sessions:
        what = f"pid {each.pid} ({each.who}), {each.state} for {_span(each.age)}"
        end = f"end its transaction, or `select pg_terminate_backend({each.pid})`"
        if each.age < limits.snapshot_seconds:
            continue
        held = f"keeps dead rows of {count(each.holds or 0, 'transaction')} from vacuum"
        if each.kind == "prepared":
            yield _warning(
                "prepared_transaction",
                f"prepared transaction {each.who} of {_span(each.age)} ago {held}",
                f"`commit prepared '{each.who}'` or `rollback prepared '{each.who}'`",
            )
        elif each.stuck_writing:
            yield _warning(
                "stuck_client",
                f"{what}, waits for its client to read what it was sent"
                + (f" and {held}" if each.holds is not None else ""),
                f"see whether that process is stopped or hangs; {end}",
            )
        elif each.kind == "walsender":
            yield _warning(
                "standby_snapshot",
                f"the standby of {what} {held}",
                "end its long queries, or switch its hot_standby_feedback off",
            )
        elif each.holds is not None:
            yield _warning("old_snapshot", f"{what}, {held}", end)
        elif each.idle:
            yield _warning("idle_in_transaction", f"{what}, may hold locks", end)
    if facts.hidden_sessions:
        yield _note(
            "hidden_sessions",
            f"{count(facts.hidden_sessions, 'session')} of other roles cannot be looked at",
            "grant this role pg_read_all_stats to see what they hold",
        )


def _slots(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for slot in facts.slots:
        state = "in use" if slot.active else "not in use"
        drop = f"`select pg_drop_replication_slot('{slot.name}')` if nobody needs it"
        if slot.holds is not None and (not slot.active or slot.holds > limits.dead_rows):
            seen = f"replication slot {slot.name}, {state}, keeps dead rows of "
            yield _warning("slot_snapshot", f"{seen}{count(slot.holds, 'transaction')}", drop)
        if slot.kept_bytes >= limits.wal_bytes:
            yield _warning(
                "slot_wal",
                f"replication slot {slot.name}, {state}, keeps {_size(slot.kept_bytes)} of WAL",
                f"start its reader; {drop}",
            )


def _tables(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for table in facts.tables:
        yield from _space(table, limits)
        yield from _upkeep(table, limits)


def _space(table: TableFacts, limits: Thresholds) -> Iterator[Finding]:
    rows = table.rows + table.dead
    if table.dead >= limits.dead_rows and table.dead > limits.dead_share * rows:
        yield _warning(
            "dead_rows",
            f"{table.name} holds {count(table.dead, 'dead row')} beside {table.rows:,} live",
            f"see what keeps vacuum away, then `vacuum {table.name}`",
        )
    wasted = table.heap_bytes - table.needed_bytes
    if wasted >= limits.bloat_bytes and table.heap_bytes > (
        limits.bloat_times * table.needed_bytes
    ):
        yield _warning(
            "bloat",
            f"{table.name} takes {_size(table.heap_bytes)} for rows of about "
            f"{_size(table.needed_bytes)}",
            f"when it is quiet `vacuum full {table.name}`, which locks it, or pg_repack",
        )


def _upkeep(table: TableFacts, limits: Thresholds) -> Iterator[Finding]:
    rows = table.rows + table.dead
    if table.changed_since_analyze >= limits.stale_rows and (
        table.changed_since_analyze > limits.stale_share * max(1, rows)
    ):
        when = "never" if table.analyzed_age is None else f"{_span(table.analyzed_age)} ago"
        yield _warning(
            "stale_statistics",
            f"{table.name} was analyzed {when}; {table.changed_since_analyze:,} rows changed",
            f"`analyze {table.name}`",
        )
    if not table.autovacuum:
        yield _error(
            "autovacuum_of_table",
            f"autovacuum is switched off for {table.name}",
            f"`alter table {table.name} reset (autovacuum_enabled)`",
        )


def _autovacuum(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for name, on in (("autovacuum", facts.autovacuum), ("track_counts", facts.track_counts)):
        if not on:
            yield _error(
                "autovacuum",
                f"{name} is off: dead rows are never taken away",
                f"`alter system set {name} = on; select pg_reload_conf()`",
            )
    if facts.naptime > limits.naptime_seconds:
        yield _warning(
            "autovacuum_naptime",
            f"autovacuum looks only every {_span(facts.naptime)}",
            "`alter system set autovacuum_naptime = '1min'; select pg_reload_conf()`",
        )


def _ages(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for what, age in (("transaction", facts.freeze_age), ("multixact", facts.multixact_age)):
        if age >= limits.freeze_age:
            level = _error if age >= 0.75 * WRAPAROUND else _warning
            yield level(
                "wraparound",
                f"the oldest {what} id is {age:,} old; at about {WRAPAROUND:,} writes are refused",
                "end old transactions, then `vacuum (freeze)` the oldest tables",
            )


def _notify(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    if facts.notify_usage >= limits.notify_usage:
        level = _error if facts.notify_usage >= 0.5 else _warning
        yield level(
            "notify_queue",
            f"the queue of notifications is {facts.notify_usage:.0%} full; when it is, every "
            "commit that notifies fails",
            "end the listening session with the oldest transaction, or whose client hangs",
        )


def _workers(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    for worker in facts.silent_workers:
        yield _warning(
            "silent_worker",
            f"worker {worker} has stopped beating and nobody has declared it dead",
            "see whether it runs; another worker with death detection buries it",
        )
    if facts.due and not facts.living_workers:
        yield _error(
            "no_worker",
            f"{count(facts.due, 'job')} due and no worker is alive",
            "start one: `leasebook worker app:book`",
        )


def _queue(facts: Facts, limits: Thresholds) -> Iterator[Finding]:
    if facts.oldest_due is not None and facts.oldest_due >= limits.late_seconds:
        yield _warning(
            "late",
            f"the oldest of {count(facts.due, 'due job')} waits since {_span(facts.oldest_due)}",
            "`leasebook stats` shows the queue; add workers for it, or slots",
        )
    if facts.held:
        yield _note(
            "held",
            f"{count(facts.held, 'job')} failed and held for an operator",
            "`leasebook list --state failed`, then `leasebook history JOB`",
        )
    if facts.aborted:
        yield _note(
            "aborted",
            f"{count(facts.aborted, 'job')} aborted within a day: a run was interrupted",
            "the lines `job aborted` of the workers name them, then `leasebook history JOB`",
        )
    growth = facts.events_per_day * facts.bytes_per_event
    if facts.events_per_day:
        level = _warning if growth >= limits.growth_bytes else _note
        yield level(
            "growth",
            f"about {facts.events_per_day:,.0f} events a day, {_size(growth)} of log",
            "see that the disk has room for the months to come",
        )
