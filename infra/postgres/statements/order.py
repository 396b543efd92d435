"""Who is before a job in the order of its key, who ends a wait, and how a key is known to be quiet.

A producer shares the lock of its key from before it draws a number until its transaction ends.  Who
gets that lock alone, be it for an instant, knows that every lower number has been committed or
will never be; a later statement, with a newer snapshot, sees them all.
"""

from __future__ import annotations

from ....projections.row import FORMAT
from ..schema.name import Schema
from .columns import job_columns

#: A job that others of its key wait for: unfinished, or held without letting them go on.  It is the
#: literal predicate of the index of keys.
IN_LINE = "j.ordering_key is not null and (not j.held or j.on_hold is null)"


SAVEPOINT = "leasebook_order"


def savepoint(schema: Schema) -> str:
    """From here on locks can be given back."""
    return f"savepoint {SAVEPOINT}"


def roll_back(schema: Schema) -> str:
    """Give back what was locked since the savepoint."""
    return f"rollback to savepoint {SAVEPOINT}"


def release(schema: Schema) -> str:
    """Be in no subtransaction any more."""
    return f"release savepoint {SAVEPOINT}"


def key_lock(key: str) -> str:
    """The number of the lock of an ordering key."""
    parts = f"pg_catalog.concat_ws(e'\\x1f', %(schema)s::text, 'order', {key})"
    return f"pg_catalog.hashtextextended({parts}, 0)"


def shared_locks(key: str, source: str) -> str:
    """A CTE ``locked`` that shares the locks of these keys, for as long as the transaction lasts.

    It must be referred to by whatever draws a number: a CTE that nobody asks for takes no lock.
    """
    lock = f"pg_catalog.pg_advisory_xact_lock_shared({key_lock('k.key')})"
    return f"""locked as materialized (
    select pg_catalog.count({lock}) as keys
      from (select distinct {key} as key from {source}
             where {key} is not null order by 1) as k
)"""


def missing(schema: Schema) -> str:
    """Which of these jobs have never been there, as far as this transaction can see?

    What is pruned was there, and is told by its summary.
    """
    return f"""
select i.id::text
  from unnest(%(ids)s::text::uuid[]) as i (id)
 where (select e.version from {schema.table("job_events")} as e
         where e.job_id = i.id and e.version = 1) is null
   and (select s.status from {schema.table("job_summaries")} as s where s.job_id = i.id) is null
"""


def next_number(schema: Schema) -> str:
    """The next number of the sequence that numbers events, and so the order of keys.

    (An identity column's sequence has its name from the table and the column; asking the server for
    it takes as long as drawing ten numbers.)
    """
    sequence = schema.table("job_events_event_id_seq").replace("'", "''")
    return f"pg_catalog.nextval('{sequence}'::regclass)"


def try_keys(schema: Schema) -> str:
    """Of which of these keys is no producer left?  (The locks go with the savepoint around it.)"""
    return f"""
select k.key
  from unnest(%(keys)s::text[]) as k (key)
 where pg_catalog.pg_try_advisory_xact_lock({key_lock("k.key")})
"""


def quiet_key(schema: Schema) -> str:
    """Wait until no producer of this key is left; then, which number is its newest?"""
    return f"""
select pg_catalog.pg_advisory_xact_lock({key_lock("%(key)s::text")});
select greatest(
       (select pg_catalog.max(j.seq) from {schema.table("jobs")} as j
         where j.ordering_key = %(key)s and {IN_LINE}),
       (select pg_catalog.max(i.sequence) from {schema.table("group_inbox")} as i
         where i.ordering_key = %(key)s),
       0)
"""


def ahead(schema: Schema) -> str:
    """What stands before these jobs, all of them ours, in the order of their keys?

    One row for each.  ``parent`` is the unfinished job that it comes after, ``parent_kind`` the
    last event of that one and ``parent_end`` how it ended, if that is kept; ``prior`` the nearest
    earlier job of its key; ``item`` tells that an earlier item lies in the inbox, ``running`` that
    another job of the key is leased.  ``asked_at`` is later than the end of everything that is not
    there any more.
    """
    return f"""
select own.id,
       (select parent.id from {schema.table("jobs")} as parent
         where parent.id = own.after and not parent.held) as parent,
       (select e.kind from {schema.table("job_events")} as e
         where e.job_id = own.after order by e.version desc limit 1) as parent_kind,
       (select s.status from {schema.table("job_summaries")} as s
         where s.job_id = own.after) as parent_end,
       (select j.id from {schema.table("jobs")} as j
         where j.ordering_key = own.ordering_key and j.seq < own.seq and {IN_LINE}
         order by j.seq desc limit 1) as prior,
       exists (select from {schema.table("group_inbox")} as i
                where i.ordering_key = own.ordering_key and i.sequence < own.seq) as item,
       exists (select from {schema.table("jobs")} as j
                where j.ordering_key = own.ordering_key and j.ordering_key is not null
                  and j.state = 'leased' and j.id <> own.id) as running,
       own.seq, pg_catalog.clock_timestamp() as asked_at
  from unnest(%(ids)s::uuid[]) as i (id)
 cross join lateral (
       select j.* from {schema.table("jobs")} as j where j.id = i.id offset 0
       ) as own
"""


def mark_waited_for(schema: Schema) -> str:
    """Which of these jobs can we be sure of until we commit?  Somebody waits for them from now on.

    What somebody else holds may be about to end, so it is left out; so is what has ended, and a
    parent or a job of a key that was held meanwhile.  A row that is marked is written all the
    same: who ends it in an older snapshot then fails to serialize, and misses nobody who waits.
    """
    return f"""
with locked as materialized (
    select j.id
      from {schema.table("jobs")} as j
     where j.id = any (%(ids)s::uuid[])
       and (j.id = any (%(priors)s::uuid[]) and {IN_LINE}
            or j.id = any (%(parents)s::uuid[]) and not j.held)
     order by j.id
       for update skip locked
), marked as (
    update {schema.table("jobs")} as j
       set has_waiter = true, format = greatest(j.format, {FORMAT}::smallint)
      from locked
     where j.id = any (array[locked.id])
)
select locked.id from locked
"""


def waiting_rows(schema: Schema, blockers: str, parents: str, lock: str) -> str:
    """CTEs: ``found`` are those whom ``blockers`` block, and who comes after ``parents`` and is
    blocked or held, by id; ``locked`` their rows, locked in order of id.

    ``blockers`` and ``parents`` are arrays of ids, ``lock`` the clause that locks.
    """
    return f"""found as materialized (
    select j.id from {schema.table("jobs")} as j
     where j.blocked_by = any ({blockers}) and j.blocked_by is not null
     union
    select j.id from {schema.table("jobs")} as j
     where j.after = any ({parents}) and j.after is not null
       and (j.blocked_by = j.after or j.held)
), locked as materialized (
    select j.*
      from {schema.table("jobs")} as j
     where j.id = any (array(select found.id from found))
       and (j.blocked_by is not null or j.held)
     order by j.id
       {lock}
)"""


def waiting(schema: Schema) -> str:
    """Whom do these jobs block, and who comes after these parents and is blocked or held?

    What somebody else holds is left out; ``found`` counts it too, in every row and at least in one.
    """
    blockers, parents = "%(blockers)s::uuid[]", "%(parents)s::uuid[]"
    return f"""
with {waiting_rows(schema, blockers, parents, "for update skip locked")}
select (select pg_catalog.count(*) from found) as found, pg_catalog.clock_timestamp() as asked_at,
       {job_columns("locked")}
  from (select) as always
  left join locked on true
 order by locked.id
"""


def stranded(schema: Schema) -> str:
    """Which jobs are blocked by one that will not end: it has no row any more, or is held?"""
    return f"""
with found as materialized (
    select j.*
      from {schema.table("jobs")} as j
     where j.blocked_by is not null and j.format <= %(format)s
       and (select blocker.seq from {schema.table("jobs")} as blocker
             where blocker.id = j.blocked_by
               and not (blocker.held and (blocker.id = j.after or blocker.on_hold is not null))
           ) is null
     limit %(limit)s
       for update of j skip locked
)
select pg_catalog.clock_timestamp() as asked_at,
       {job_columns("found")}
  from found
 order by found.id
"""
