-- Keys, monitoring and what else release 0.2 needs.  The migration fills in the schema's quoted name.
--
-- Every section that begins with a line `-- step: ...` is one short transaction when a schema that is
-- in use is upgraded.  A migration that was cut off runs again from the first step, so each step does
-- nothing where it was done before.  A step takes a strong lock only for a change of the catalog: new
-- columns are nullable or have a constant default.  Indexes of existing tables are in 0002_operable.py.

-- step: keys of jobs
alter table @schema@.jobs add column if not exists unique_key text;

-- step: keys of requests
create table if not exists @schema@.request_keys (
    key    text        not null,
    job_id uuid        not null,
    digest text        not null,
    at     timestamptz not null default pg_catalog.clock_timestamp(),
    constraint request_keys_pkey primary key (key)
);
comment on table @schema@.request_keys is 'Idempotency keys with the job of their first request; never pruned.';

-- step: when duties of the whole queue were last done
create table if not exists @schema@.checkpoints (
    name text        not null,
    at   timestamptz not null,
    constraint checkpoints_pkey primary key (name)
);
comment on table @schema@.checkpoints is 'When what is done once for the whole queue was last done.';

-- step: rows of other queues that have become jobs
create table if not exists @schema@.imported_rows (
    source text        not null,
    key    text        not null,
    at     timestamptz not null default pg_catalog.clock_timestamp(),
    constraint imported_rows_pkey primary key (source, key)
);
comment on table @schema@.imported_rows is 'Rows of other queues that were imported, by table and primary key; never pruned.';

-- step: the guard on a table whose work has moved here
create or replace function @schema@.refuse_old_queue() returns trigger language plpgsql
    set search_path = pg_catalog as $$
begin
    raise exception '% on %.% was refused: this queue has moved to leasebook and takes no more work',
            tg_op, tg_table_schema, tg_table_name
        using errcode = 'object_not_in_prerequisite_state', hint = tg_argv[0];
end $$;
