-- What reading the log by windows needs.  The migration fills in the schema's
-- quoted name.
--
-- Sections are steps as in 0002: each is one short transaction, does nothing where it was done before,
-- and changes the catalog only.  Indexes of existing tables are in 0004_windows.py.

-- step: how far a reader has come
alter table @schema@.checkpoints add column if not exists position json;

-- step: the cluster whose transaction numbers the log holds
do $home$
begin
    insert into @schema@.checkpoints (name, at, position)
    select 'log home', pg_catalog.clock_timestamp(),
           pg_catalog.json_build_object('system', s.system_identifier::text)
      from pg_catalog.pg_control_system() as s
        on conflict (name) do nothing;
exception when insufficient_privilege then
    null; -- Without the right to know it nothing is held against it.
end $home$;

-- step: pages that were filled since the last summary
create or replace function @schema@.summarize_log() returns void language plpgsql security definer
    set search_path = pg_catalog set lock_timeout = '100ms' as $body$
begin
    perform brin_summarize_new_values(to_regclass($name$@schema@.job_events_xid$name$));
    perform brin_summarize_new_values(to_regclass($name$@schema@.audit_log_xid$name$));
exception when lock_not_available then
    null; -- Vacuum is at it, which summarizes as well.
end $body$;
comment on function @schema@.summarize_log() is
    'Lets the indexes of transaction numbers know the newest pages; runs as their owner.';
