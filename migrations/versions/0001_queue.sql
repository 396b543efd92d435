-- Everything the queue of release 0.1 needs.  The migration fills in the schema's quoted name.

create table @schema@.job_events (
    job_id   uuid        not null,
    version  bigint      not null,
    event_id bigint      generated always as identity (cache 1),
    xid      bigint      not null default pg_catalog.pg_current_xact_id()::text::bigint,
    at       timestamptz not null,
    kind     text        not null,
    due_at   timestamptz,
    lease    bigint,
    worker   text,
    data     json,
    constraint job_events_pkey primary key (job_id, version)
);
comment on table @schema@.job_events is 'The truth: every event of every job. Append-only.';

create function @schema@.refuse_change() returns trigger language plpgsql
    set search_path = pg_catalog as $$
begin
    raise exception '% of %.% was refused: the log is append-only', tg_op, tg_table_schema, tg_table_name
        using errcode = 'insufficient_privilege',
              hint = 'Correct the future with a new event; the past stays as it was recorded.';
end $$;

create trigger job_events_append_only before update or delete or truncate on @schema@.job_events
    for each statement execute function @schema@.refuse_change();
alter table @schema@.job_events enable always trigger job_events_append_only;

create table @schema@.jobs (
    id             uuid             not null,
    seq            bigint           not null,
    format         smallint         not null default 1,
    queue          text             not null,
    priority       smallint         not null,
    name           text             not null,
    args           json             not null,
    enqueued_at    timestamptz      not null,
    retries        bigint           not null,
    timeout        double precision not null,
    lease_seconds  double precision not null,
    on_exhausted   text             not null,
    label          text,
    owner          text,
    subject        text,
    expires_at     timestamptz,
    group_key      text,
    group_window   double precision,
    group_max_hold double precision,
    group_max_size bigint,
    hold_until     timestamptz,
    version        bigint           not null,
    state          text             not null,
    due_at         timestamptz      not null,
    at             timestamptz      not null,
    suspect        boolean          not null default false,
    held           boolean          not null default false,
    starts         bigint           not null default 0,
    attempts       bigint           not null default 0,
    interruptions  bigint           not null default 0,
    lease          bigint,
    worker         text,
    started_at     timestamptz,
    items          json[],
    outcome        text,
    constraint jobs_pkey primary key (id)
) with (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
comment on table @schema@.jobs is 'Unfinished and held jobs only: derived from job_events.';
comment on column @schema@.jobs.seq is 'The event_id of the enqueued event.';
comment on column @schema@.jobs.due_at is 'When it may start; while leased, when the lease ends.';

create index jobs_claim on @schema@.jobs (queue, priority desc, due_at, seq)
    where state <> 'leased' and not held and not suspect;
create index jobs_suspect on @schema@.jobs (queue, priority desc, due_at, seq)
    where state <> 'leased' and not held and suspect;
create index jobs_leased on @schema@.jobs (due_at) where state = 'leased';
create unique index jobs_open_group on @schema@.jobs (queue, name, group_key)
    where state = 'grouped';

create table @schema@.group_inbox (
    id        bigint      generated always as identity (cache 1),
    at        timestamptz not null default pg_catalog.clock_timestamp(),
    format    smallint    not null default 1,
    queue     text        not null,
    name      text        not null,
    group_key text        not null,
    subject   text,
    item      json        not null,
    spec      json        not null,
    constraint group_inbox_pkey primary key (id)
) with (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.05
);
comment on table @schema@.group_inbox is 'Items that wait to be collected into groups.';

create table @schema@.workers (
    id           text        not null,
    name         text        not null,
    host         text        not null,
    pid          bigint      not null,
    capacity     bigint      not null,
    queues       text[]      not null,
    code_version text        not null,
    started_at   timestamptz not null default pg_catalog.clock_timestamp(),
    beat_at      timestamptz not null default pg_catalog.clock_timestamp(),
    beats        bigint      not null default 0,
    died_at      timestamptz,
    constraint workers_pkey primary key (id)
) with (fillfactor = 50);
comment on table @schema@.workers is 'Heartbeats; never rebuilt from the log.';

create table @schema@.audit_log (
    id         bigint      generated always as identity (cache 1),
    at         timestamptz not null default pg_catalog.clock_timestamp(),
    xid        bigint      not null default pg_catalog.pg_current_xact_id()::text::bigint,
    kind       text        not null,
    job_id     uuid,
    worker     text,
    request_id text,
    detail     json        not null,
    constraint audit_log_pkey primary key (id),
    constraint audit_log_request unique (request_id)
);
comment on table @schema@.audit_log is 'Evidence beside the streams. Append-only.';
create trigger audit_log_append_only before update or delete or truncate on @schema@.audit_log
    for each statement execute function @schema@.refuse_change();
alter table @schema@.audit_log enable always trigger audit_log_append_only;
