"""What becomes of the work for a subject: asked by applications, in their own transactions."""

from __future__ import annotations

from ..schema.name import Schema


def standing(schema: Schema) -> str:
    """For each of these subjects: is work for it under way, and is work for it held?

    The claim table has the unfinished and the held, the inbox what is not yet collected.  Both are
    read by one statement, so that nothing slips from one to the other between two looks.  (Written
    with `limit 1`, which no planner turns into a hash of the whole table as it may an `exists`.)
    """
    return f"""
select asked.subject,
       coalesce((select true
                   from {schema.table("jobs")} as j
                  where j.subject = asked.subject and not j.held
                  limit 1), false)
    or coalesce((select true
                   from {schema.table("group_inbox")} as i
                  where i.subject = asked.subject
                  limit 1), false) as alive,
       coalesce((select true
                   from {schema.table("jobs")} as j
                  where j.subject = asked.subject and j.held
                  limit 1), false) as held
  from unnest(%(subjects)s::text[]) as asked (subject)
"""
