with taken as (
    delete from "leasebook"."group_inbox" as i
     where i.id = any (%(ids)s::bigint[])
    returning i.id, i.at, i.queue, i.name, i.group_key, i.item, i.spec, i.sequence
)
select taken.id, taken.at, taken.queue, taken.name, taken.group_key, taken.item, taken.spec,
       taken.sequence
  from taken order by taken.id
