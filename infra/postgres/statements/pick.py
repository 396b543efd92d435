"""Which jobs may be taken: due ones, those whose lease has ended, those of a lost worker.

Every answer is of locked rows that the statement itself has checked again under the lock; what
somebody else holds is left out and met again by a later question.
"""

from __future__ import annotations

from ..schema.name import Schema
from .columns import SUSPECT, WAITING, job_columns

NO_FLOOR = "'-infinity'"


def claim(schema: Schema) -> str:
    """The first due waiting jobs in claim order: by priority, then queue as given, then age.

    The driver comes sorted, and each of its ranges touches due rows only, from the floor on.  Rows
    are locked as they are read, one by one, until the limit is reached: no more are locked, and
    what others hold is stepped over.  They are answered as they are read, because to keep and sort
    such wide rows takes as long as to find them.

    Suspects have an index of their own.  When one that is allowed is due, it is the last row,
    without a time and not locked: then ``claim_among`` tells which of them have a place.
    """
    return f"""
{_driver(schema)}
select (select at from clock) as asked_at,
       {job_columns("plain")}
  from (select picked.*
          from driver
         cross join lateral ({_range(schema, WAITING, "%(since)s", "%(limit)s")}
              for update skip locked
               ) as picked
         limit %(limit)s) as plain
 union all
select null::timestamptz,
       {job_columns("doubted")}
  from (select picked.*
          from driver
         cross join lateral ({_range(schema, SUSPECT, NO_FLOOR, "1")}
               ) as picked
         limit least(%(suspects)s, 1)) as doubted
"""


def claim_among(schema: Schema) -> str:
    """As ``claim``, suspects and others in one order.

    The few suspects that are allowed are found without a lock, and locked if the limit leaves them
    a place.
    """
    return _claim_among(schema, WAITING, SUSPECT)


def claim_others(schema: Schema) -> str:
    """As ``claim_among``, without the jobs of some ordering keys, and those after some parents.

    Open groups of these keys are among the answer.
    """
    others = (
        "(j.ordering_key is null or j.ordering_key <> all (%(without)s::text[])"
        " or j.state = 'grouped')"
        " and (j.after is null or j.after <> all (%(parents)s::uuid[]))"
    )
    return _claim_among(schema, f"{WAITING} and {others}", f"{SUSPECT} and {others}")


def own(schema: Schema) -> str:
    """The row of a worker who asks, as a part of a statement; a burial waits, or is waited for."""
    return f"""own as materialized (
    select w.died_at from {schema.table("workers")} as w where w.id = %(worker)s for key share
)"""


def _driver(schema: Schema) -> str:
    """The time, and the ranges to go through, in claim order.

    For a worker that is not alive there is no time, and nothing is due.  The time is read after its
    row was locked, for which a reaper may have let us wait.
    """
    return f"""with {own(schema)}, clock as materialized (
    select pg_catalog.clock_timestamp() as at
     where %(worker)s::text is null or (select own.died_at is null from own)
), driver as materialized (
    select q.queue, p.priority::smallint as priority,
           pg_catalog.row_number() over (order by p.priority desc, q.turn) as place
      from unnest(%(queues)s::text[]) with ordinality as q (queue, turn)
     cross join generate_series(9, 0, -1) as p (priority)
     order by place
)"""


def _claim_among(schema: Schema, waiting: str, suspect: str) -> str:
    return f"""
{_driver(schema)}, plain as materialized (
    select driver.place, picked.*
      from driver
     cross join lateral ({_range(schema, waiting, "%(since)s", "%(limit)s")}
              for update skip locked
           ) as picked
     limit %(limit)s
), last as materialized (
    select plain.place, plain.due_at, plain.seq
      from plain
     order by plain.place, plain.due_at, plain.seq
     limit 1 offset %(limit)s - 1
), doubted as materialized (
    select driver.place, picked.id, picked.version, picked.due_at, picked.seq
      from driver
     cross join lateral ({_range(schema, suspect, NO_FLOOR, "%(suspects)s")}
           ) as picked
     limit %(suspects)s
), suspect as materialized (
    select doubted.place, picked.*
      from doubted
     cross join lateral (
           select j.*
             from {schema.table("jobs")} as j
            where j.id = doubted.id and j.version = doubted.version
            for update skip locked
           ) as picked
     where not exists (
           select from last
            where (last.place, last.due_at, last.seq)
                < (doubted.place, doubted.due_at, doubted.seq))
)
select (select at from clock) as asked_at,
       {job_columns("chosen")}
  from (select * from plain union all select * from suspect) as chosen
 order by chosen.place, chosen.due_at, chosen.seq
 limit %(limit)s
"""


def overdue(schema: Schema) -> str:
    """Whose lease has ended, the longest overdue first, of any queue and name?"""
    return f"""
with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), ended as materialized (
    select j.*
      from {schema.table("jobs")} as j
     where j.state = 'leased' and j.due_at <= (select at from clock) and j.format <= %(format)s
     order by j.due_at
     limit %(limit)s
       for update skip locked
)
select (select at from clock) as asked_at,
       {job_columns("ended")}
  from ended
 order by ended.id
"""


def leased_by(schema: Schema) -> str:
    """What does this worker hold?  Leased rows are few, and have an index of their own."""
    return f"""
with clock as materialized (
    select pg_catalog.clock_timestamp() as at
), held as materialized (
    select j.*
      from {schema.table("jobs")} as j
     where j.state = 'leased' and j.worker = %(worker)s and j.format <= %(format)s
     order by j.due_at
     limit %(limit)s
       for update skip locked
)
select (select at from clock) as asked_at,
       {job_columns("held")}
  from held
 order by held.id
"""


def holds_leases(schema: Schema) -> str:
    """Does this worker hold anything, locked or not?"""
    return f"""
select exists (
       select from {schema.table("jobs")} as j
        where j.state = 'leased' and j.worker = %(worker)s and j.format <= %(format)s)
"""


def _range(schema: Schema, predicate: str, since: str, limit: str) -> str:
    """The due rows of one queue and priority from ``since`` on, in the order of the indexes.

    Suspects have no floor: they wait below it for their turn, and their index is small.
    """
    return f"""
           select j.*
             from {schema.table("jobs")} as j
            where j.queue = driver.queue and j.priority = driver.priority
              and {predicate}
              and j.due_at <= (select at from clock) and j.due_at >= {since}::timestamptz
              and j.name = any (%(names)s::text[]) and j.format <= %(format)s
            order by j.due_at, j.seq
            limit {limit}"""
