"""Writing a history that was recorded elsewhere into a schema of its own, to be looked at."""

from __future__ import annotations

from ..schema.name import Schema
from .columns import EVENT
from .windows import HOME

#: What stands for the cluster of a log that came with a bundle: no cluster at all.
ELSEWHERE = "bundle"


def is_used(schema: Schema) -> str:
    """Does the schema hold anything that happened?"""
    tables = ("job_events", "jobs", "group_inbox", "audit_log")
    found = "\n    or ".join(f"exists (select from {schema.table(name)})" for name in tables)
    return f"select {found}"


def claim(schema: Schema) -> str:
    """From now on the log is one of elsewhere: no row is ever made from it."""
    return f"""
insert into {schema.table("checkpoints")} as c (name, at, position)
values ('{HOME}', pg_catalog.clock_timestamp(), '{{"system": "{ELSEWHERE}"}}')
on conflict (name) do update set position = excluded.position
"""


def copy_events(schema: Schema) -> str:
    """Take events as they come, with their numbers."""
    columns = ", ".join(("job_id", "version", "event_id", "xid", *EVENT))
    return f"copy {schema.table('job_events')} ({columns}) from stdin"


def copy_audit(schema: Schema) -> str:
    """Take lines of the audit log as they come."""
    return f"copy {schema.table('audit_log')} (at, kind, job_id, worker, detail) from stdin"
