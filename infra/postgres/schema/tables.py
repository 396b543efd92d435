"""The tables that this release needs, in the words in which the server describes them.

This is what `check_schema` compares with the catalog, and nothing else reads it: statements are
SQL, and migrations are history.  It is data and not SQLAlchemy's MetaData so that a worker starts
without SQLAlchemy.  A test compares it with a migrated database, both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from attrs import frozen

from ....migrations import VERSION_TABLE


class Part(NamedTuple):
    """What a definition belongs to; ``name`` is empty for the table itself.

    ``kind`` is table, column, primary key, unique constraint, index or trigger.
    """

    kind: str
    table: str
    name: str


@frozen
class Table:
    """A table: its columns one a line, and the definitions of the rest by kind and name.

    Indexes and triggers are written without the schema, as `statements.catalog` answers them.
    """

    name: str
    columns: str
    rest: Mapping[tuple[str, str], str]

    def parts(self) -> Iterator[tuple[Part, str]]:
        """Everything the table must have, with its definition; the table itself comes first."""
        yield Part("table", self.name, ""), "table"
        for line in self.columns.strip().splitlines():
            column, _, definition = line.strip().partition(" ")
            yield Part("column", self.name, column), definition
        for (kind, name), definition in self.rest.items():
            yield Part(kind, self.name, name), definition


def _append_only(table: str) -> dict[tuple[str, str], str]:
    definition = (
        f"CREATE TRIGGER {table}_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change() (always)"
    )
    return {("trigger", f"{table}_append_only"): definition}


def _by_xid(table: str) -> str:
    return (
        f"CREATE INDEX {table}_xid ON {table} USING brin (xid) "
        "WITH (pages_per_range='32', autosummarize='on')"
    )


JOB_EVENTS: Final = Table(
    "job_events",
    """
    job_id uuid not null
    version bigint not null
    event_id bigint not null generated always as identity
    xid bigint not null with a default
    at timestamp with time zone not null
    kind text not null
    due_at timestamp with time zone
    lease bigint
    worker text
    data json
    """,
    {
        ("primary key", "job_events_pkey"): "PRIMARY KEY (job_id, version)",
        ("index", "job_events_xid"): _by_xid("job_events"),
        **_append_only("job_events"),
    },
)

JOBS: Final = Table(
    "jobs",
    """
    id uuid not null
    seq bigint not null
    format smallint not null with a default
    queue text not null
    priority smallint not null
    name text not null
    args json not null
    enqueued_at timestamp with time zone not null
    retries bigint not null
    timeout double precision not null
    lease_seconds double precision not null
    on_exhausted text not null
    label text
    owner text
    subject text
    expires_at timestamp with time zone
    group_key text
    group_window double precision
    group_max_hold double precision
    group_max_size bigint
    hold_until timestamp with time zone
    unique_key text
    on_expired text
    ordering_key text
    on_hold text
    after uuid
    sequence bigint
    version bigint not null
    state text not null
    due_at timestamp with time zone not null
    at timestamp with time zone not null
    suspect boolean not null with a default
    held boolean not null with a default
    starts bigint not null with a default
    attempts bigint not null with a default
    interruptions bigint not null with a default
    lease bigint
    worker text
    started_at timestamp with time zone
    items json[]
    outcome text
    blocked_by uuid
    blocked_due timestamp with time zone
    effects json
    has_waiter boolean not null with a default
    """,
    {
        ("primary key", "jobs_pkey"): "PRIMARY KEY (id)",
        ("index", "jobs_claim"): (
            "CREATE INDEX jobs_claim ON jobs USING btree (queue, priority DESC, due_at, seq) "
            "WHERE ((state <> 'leased'::text) AND (NOT held) AND (NOT suspect))"
        ),
        ("index", "jobs_suspect"): (
            "CREATE INDEX jobs_suspect ON jobs USING btree (queue, priority DESC, due_at, seq) "
            "WHERE ((state <> 'leased'::text) AND (NOT held) AND suspect)"
        ),
        ("index", "jobs_leased"): (
            "CREATE INDEX jobs_leased ON jobs USING btree (due_at) WHERE (state = 'leased'::text)"
        ),
        ("index", "jobs_open_group"): (
            "CREATE UNIQUE INDEX jobs_open_group ON jobs USING btree (queue, name, group_key) "
            "WHERE (state = 'grouped'::text)"
        ),
        ("index", "jobs_unique_key"): (
            "CREATE UNIQUE INDEX jobs_unique_key ON jobs USING btree (queue, unique_key) "
            "WHERE (unique_key IS NOT NULL)"
        ),
        ("index", "jobs_ordering_key"): (
            "CREATE INDEX jobs_ordering_key ON jobs USING btree (ordering_key, seq) "
            "WHERE ((ordering_key IS NOT NULL) AND ((NOT held) OR (on_hold IS NULL)))"
        ),
        ("index", "jobs_running_key"): (
            "CREATE INDEX jobs_running_key ON jobs USING btree (ordering_key) "
            "WHERE ((ordering_key IS NOT NULL) AND (state = 'leased'::text))"
        ),
        ("index", "jobs_blocked"): (
            "CREATE INDEX jobs_blocked ON jobs USING btree (blocked_by) "
            "WHERE (blocked_by IS NOT NULL)"
        ),
        ("index", "jobs_after"): (
            "CREATE INDEX jobs_after ON jobs USING btree (after) WHERE (after IS NOT NULL)"
        ),
        ("index", "jobs_subject"): (
            "CREATE INDEX jobs_subject ON jobs USING btree (subject) WHERE (subject IS NOT NULL)"
        ),
    },
)

GROUP_INBOX: Final = Table(
    "group_inbox",
    """
    id bigint not null generated always as identity
    at timestamp with time zone not null with a default
    format smallint not null with a default
    queue text not null
    name text not null
    group_key text not null
    subject text
    item json not null
    spec json not null
    ordering_key text
    sequence bigint
    """,
    {
        ("primary key", "group_inbox_pkey"): "PRIMARY KEY (id)",
        ("index", "group_inbox_ordering_key"): (
            "CREATE INDEX group_inbox_ordering_key ON group_inbox USING btree "
            "(ordering_key, sequence) WHERE (ordering_key IS NOT NULL)"
        ),
        ("index", "group_inbox_subject"): (
            "CREATE INDEX group_inbox_subject ON group_inbox USING btree (subject) "
            "WHERE (subject IS NOT NULL)"
        ),
    },
)

WORKERS: Final = Table(
    "workers",
    """
    id text not null
    name text not null
    host text not null
    pid bigint not null
    capacity bigint not null
    queues text[] not null
    code_version text not null
    started_at timestamp with time zone not null with a default
    beat_at timestamp with time zone not null with a default
    beats bigint not null with a default
    died_at timestamp with time zone
    """,
    {("primary key", "workers_pkey"): "PRIMARY KEY (id)"},
)

AUDIT_LOG: Final = Table(
    "audit_log",
    """
    id bigint not null generated always as identity
    at timestamp with time zone not null with a default
    xid bigint not null with a default
    kind text not null
    job_id uuid
    worker text
    request_id text
    detail json not null
    """,
    {
        ("primary key", "audit_log_pkey"): "PRIMARY KEY (id)",
        ("unique constraint", "audit_log_request"): "UNIQUE (request_id)",
        ("index", "audit_log_xid"): _by_xid("audit_log"),
        **_append_only("audit_log"),
    },
)

REQUEST_KEYS: Final = Table(
    "request_keys",
    """
    key text not null
    job_id uuid not null
    digest text not null
    at timestamp with time zone not null with a default
    """,
    {("primary key", "request_keys_pkey"): "PRIMARY KEY (key)"},
)

CHECKPOINTS: Final = Table(
    "checkpoints",
    """
    name text not null
    at timestamp with time zone not null
    position json
    """,
    {("primary key", "checkpoints_pkey"): "PRIMARY KEY (name)"},
)

IMPORTED_ROWS: Final = Table(
    "imported_rows",
    """
    source text not null
    key text not null
    at timestamp with time zone not null with a default
    """,
    {("primary key", "imported_rows_pkey"): "PRIMARY KEY (source, key)"},
)

JOB_SUMMARIES: Final = Table(
    "job_summaries",
    """
    job_id uuid not null
    status text not null
    outcome text not null
    name text not null
    owner text
    at timestamp with time zone not null
    receipts json
    """,
    {("primary key", "job_summaries_pkey"): "PRIMARY KEY (job_id)"},
)

VERSION: Final = Table(
    VERSION_TABLE,
    "version_num character varying(32) not null",
    {("primary key", f"{VERSION_TABLE}_pkc"): "PRIMARY KEY (version_num)"},
)

TABLES: Final = (
    JOB_EVENTS, JOBS, GROUP_INBOX, WORKERS, AUDIT_LOG, REQUEST_KEYS, CHECKPOINTS, IMPORTED_ROWS,
    JOB_SUMMARIES, VERSION,
)  # fmt: skip
