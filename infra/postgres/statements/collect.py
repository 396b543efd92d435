"""How items leave the inbox: by key, under the key's lock, each statement with a newer snapshot.

The lock comes first and its holder looks afterwards.  A collector that looked and then locked
would open a second group beside the one that the former holder had just committed.
"""

from __future__ import annotations

from ..schema.name import Schema
from .columns import job_columns


def lock_keys(schema: Schema) -> str:
    """Of the oldest items, which keys can this transaction have, and which items are theirs?

    The try-locks are taken after the keys are chosen, each key once, and held to commit.  Keys come
    in the order of their oldest items.
    """
    return f"""
with oldest as materialized (
    select i.id, i.queue, i.name, i.group_key
      from {schema.table("group_inbox")} as i
     where i.format <= %(format)s
     order by i.id
     limit %(limit)s
), keys as materialized (
    select oldest.queue, oldest.name, oldest.group_key,
           pg_catalog.array_agg(oldest.id order by oldest.id) as ids
      from oldest
     group by oldest.queue, oldest.name, oldest.group_key
     order by pg_catalog.min(oldest.id)
     limit %(keys)s
), tried as materialized (
    select keys.*, pg_catalog.pg_try_advisory_xact_lock(pg_catalog.hashtextextended(
               pg_catalog.concat_ws(e'\\x1f', %(schema)s::text, 'group', keys.queue, keys.name,
                                    keys.group_key), 0)) as ours
      from keys
)
select tried.queue, tried.name, tried.group_key, tried.ids
  from tried where tried.ours
"""


def open_groups(schema: Schema) -> str:
    """Which of these keys have an open group, and is it ours to write?

    One row for each key, in the order given.  ``seen`` without an id is a group that somebody else
    has locked or that is not of our format: the key is not for this transaction.  ``newest`` is the
    group's newest item.  (It is safe to read without a lock: whoever adds items holds the key.)
    """
    return f"""
select (
           select true
             from {schema.table("jobs")} as j
            where j.state = 'grouped' and j.queue = key.queue and j.name = key.name
              and j.group_key = key.group_key) as seen,
       (
           select (e.data -> 'ids' ->> -1)::bigint
             from {schema.table("job_events")} as e
            where e.job_id = open.id and e.kind = %(joined)s
            order by e.version desc
            limit 1) as newest,
       {job_columns("open")}
  from unnest(%(queues)s::text[], %(names)s::text[], %(group_keys)s::text[])
       with ordinality as key (queue, name, group_key, place)
  left join lateral (
       select j.*
         from {schema.table("jobs")} as j
        where j.state = 'grouped' and j.queue = key.queue and j.name = key.name
          and j.group_key = key.group_key and j.format <= %(format)s
          for update skip locked
       ) as open on true
 order by key.place
"""


def take_items(schema: Schema) -> str:
    """Take these items out of the inbox, in order of id; what is gone already is left out."""
    return f"""
with taken as (
    delete from {schema.table("group_inbox")} as i
     where i.id = any (%(ids)s::bigint[])
    returning i.id, i.at, i.queue, i.name, i.group_key, i.item, i.spec, i.sequence
)
select taken.id, taken.at, taken.queue, taken.name, taken.group_key, taken.item, taken.spec,
       taken.sequence
  from taken order by taken.id
"""
