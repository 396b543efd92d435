-- How jobs ended, and pruning of their streams.  The migration fills in the schema's quoted name.
--
-- Sections are steps as in 0002: each is one short transaction, does nothing where it was done before,
-- and changes the catalog only.

-- step: how jobs ended, for those whose stream may be gone
create table if not exists @schema@.job_summaries (
    job_id   uuid        not null,
    status   text        not null,
    outcome  text        not null,
    name     text        not null,
    owner    text,
    at       timestamptz not null,
    receipts json,
    constraint job_summaries_pkey primary key (job_id)
);
comment on table @schema@.job_summaries is
    'How jobs ended: of jobs with an owner from their end on, of others since they were pruned.';
comment on column @schema@.job_summaries.status is 'For the public: succeeded or failed.';
comment on column @schema@.job_summaries.receipts is
    'What a pruned job had done outside: its completed effects with their receipts.';

-- step: the one way in which events may go
create or replace function @schema@.refuse_change() returns trigger language plpgsql
    set search_path = pg_catalog as $$
begin
    -- Nobody can log in as that role; its one function takes whole streams of jobs that are chosen.
    if tg_op = 'DELETE' and tg_table_name = 'job_events' and current_user = 'leasebook_retention' then
        return null;
    end if;
    raise exception '% of %.% was refused: the log is append-only', tg_op, tg_table_schema, tg_table_name
        using errcode = 'insufficient_privilege',
              hint = 'Correct the future with a new event; the past stays as it was recorded.';
end $$;

-- step: pruning
do $once$
begin
-- Once it is the retention role's, only that one may replace it.
if to_regprocedure($name$@schema@.prune(interval, uuid, integer)$name$) is null then
create function @schema@.prune(older_than interval, after_job uuid, batch integer)
    returns table (last_job uuid, looked bigint, pruned bigint, kept bigint, reader text)
    language plpgsql security definer
    set search_path = pg_catalog set enable_seqscan = off set enable_hashjoin = off
    set enable_mergejoin = off set jit = off
as $body$
declare
    cut_off timestamptz;
begin
    if current_user <> 'leasebook_retention' then
        raise exception 'this schema has no retention role yet'
            using errcode = 'insufficient_privilege';
    end if;
    if older_than is null or older_than < interval '0' or batch is null or batch not between 1 and 1000 then
        raise exception 'older_than is % and batch is %', older_than, batch
            using errcode = 'invalid_parameter_value',
                  hint = 'Give an age that is not negative, and 1 to 1000 jobs.';
    end if;
    -- One at a time: nobody waits for the rows of another.
    perform pg_advisory_xact_lock(
        hashtextextended(concat_ws(e'\x1f', $name$@schema@$name$, 'prune'), 0));
    cut_off := clock_timestamp() - older_than;
    return query
    with walk as materialized (
        select e.job_id
          from @schema@.job_events as e
         where e.job_id > coalesce(after_job, '00000000-0000-0000-0000-000000000000')
           and e.version = 1
         order by e.job_id
         limit batch
    ), ended as materialized (
        select walk.job_id, ends.status, newest.at, newest.xid,
               coalesce(newest.data ->> 'outcome', 'done') as outcome
          from walk
         cross join lateral (
               select e.* from @schema@.job_events as e
                where e.job_id = walk.job_id order by e.version desc limit 1) as newest
          join (values ('completed.v1', 'succeeded'), ('failed.v1', 'failed')) as ends (kind, status)
            on ends.kind = newest.kind
         where newest.at < cut_off
           and coalesce(newest.data ->> 'held', 'false') = 'false'
           and not exists (select from @schema@.jobs as j where j.id = walk.job_id)
    ), readers as materialized (
        select c.name, place.snapshot::pg_snapshot as seen
          from @schema@.checkpoints as c
         cross join lateral (select coalesce(
               c.position ->> 'snapshot', c.position -> 'position' ->> 'snapshot')) as place (snapshot)
         where place.snapshot is not null
    ), checked as materialized (
        -- What a reader of windows has not read is not taken away from it.
        select ended.*, (
               select readers.name from readers
                where not pg_visible_in_snapshot(ended.xid::text::xid8, readers.seen)
                order by readers.name limit 1) as unread
          from ended
    ), chosen as materialized (
        select checked.* from checked where checked.unread is null
    ), summarized as (
        insert into @schema@.job_summaries as s (job_id, status, outcome, name, owner, at, receipts)
        select chosen.job_id, chosen.status, chosen.outcome, birth.data ->> 'name', birth.data ->> 'owner',
               chosen.at, (
               select json_agg(json_build_object(
                          'key', e.data -> 'key', 'to', e.data -> 'to', 'receipt', e.data -> 'receipt')
                          order by e.version)
                 from @schema@.job_events as e
                where e.job_id = chosen.job_id and e.kind = 'effect_completed.v1')
          from chosen
          join @schema@.job_events as birth on birth.job_id = chosen.job_id and birth.version = 1
         order by chosen.job_id
        on conflict (job_id) do update set receipts = excluded.receipts
    ), gone as (
        delete from @schema@.job_events as e
         where e.job_id = any (array(select chosen.job_id from chosen))
    )
    select case when (select count(*) from walk) = batch
                then (select walk.job_id from walk order by walk.job_id desc limit 1) end,
           (select count(*) from walk),
           (select count(*) from chosen),
           (select count(checked.unread) from checked),
           (select min(checked.unread) from checked);
end $body$;
comment on function @schema@.prune(interval, uuid, integer) is
    'Takes the streams of old jobs that are over out of the log; runs as the retention role.';
revoke execute on function @schema@.prune(interval, uuid, integer) from public;
end if;
end $once$;

-- step: who prunes
create or replace function @schema@.appoint_retention() returns void language plpgsql
    set search_path = pg_catalog as $body$
declare
    owner regrole := (select c.relowner from pg_class as c
                       where c.oid = to_regclass($name$@schema@.job_events$name$));
    super boolean := (select r.rolsuper from pg_roles as r where r.rolname = current_user);
begin
    if not exists (select from pg_roles as r where r.rolname = 'leasebook_retention') then
        begin
            create role leasebook_retention nologin;
        exception when duplicate_object or unique_violation then
            null; -- Another database of this cluster was migrated at the same time.
        end;
    end if;
    if (select r.rolcanlogin or r.rolsuper from pg_roles as r where r.rolname = 'leasebook_retention') then
        raise exception 'role leasebook_retention can log in or is a superuser'
            using errcode = 'insufficient_privilege',
                  hint = 'alter role leasebook_retention nologin nosuperuser';
    end if;
    grant usage, create on schema @schema@ to leasebook_retention;
    grant select, delete on @schema@.job_events to leasebook_retention;
    grant select, insert, update on @schema@.job_summaries to leasebook_retention;
    grant select on @schema@.jobs, @schema@.checkpoints to leasebook_retention;
    -- Only who is a member may give the function away, and stays one for as long as that takes.
    if not super then
        execute format('grant leasebook_retention to %I', current_user);
    end if;
    alter function @schema@.prune(interval, uuid, integer) owner to leasebook_retention;
    execute format('grant execute on function %s to %s',
                   $name$@schema@.prune(interval, uuid, integer)$name$, owner);
    if not super then
        execute format('revoke leasebook_retention from %I', current_user);
    end if;
    revoke create on schema @schema@ from leasebook_retention;
end $body$;
comment on function @schema@.appoint_retention() is
    'Makes the role that nobody can log in as, and gives it the function that prunes.';
revoke execute on function @schema@.appoint_retention() from public;
do $appoint$
begin
    perform @schema@.appoint_retention();
exception when insufficient_privilege then
    null; -- Nothing can be pruned until somebody who may make roles calls it.
end $appoint$;
