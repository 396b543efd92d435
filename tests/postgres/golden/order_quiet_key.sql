select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(pg_catalog.concat_ws(e'\x1f', %(schema)s::text, 'order', %(key)s::text), 0));
select greatest(
       (select pg_catalog.max(j.seq) from "leasebook"."jobs" as j
         where j.ordering_key = %(key)s and j.ordering_key is not null and (not j.held or j.on_hold is null)),
       (select pg_catalog.max(i.sequence) from "leasebook"."group_inbox" as i
         where i.ordering_key = %(key)s),
       0)
