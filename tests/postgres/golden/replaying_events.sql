with piece as materialized (
    select e.*
      from "leasebook"."job_events" as e
     where (e.job_id, e.version) > (%(job)s::uuid, %(version)s::bigint)
     order by e.job_id, e.version
     limit %(limit)s
), place as materialized (
    select piece.job_id, piece.version
      from piece
     order by piece.job_id desc, piece.version desc
     limit 1
), member as materialized (
    select distinct piece.job_id from piece
), over as materialized (
    select member.job_id
      from member
     where exists (
           select from "leasebook"."job_events" as e
            where e.job_id = member.job_id and e.kind = 'completed.v1'
              and e.at < %(since)s::timestamptz)
)
select place.job_id as place_job, place.version as place_version,
       piece.job_id, piece.version, piece.event_id, piece.xid, piece.kind, piece.at, piece.due_at, piece.lease, piece.worker, piece.data
  from place
  left join piece
    on piece.at <= %(until)s::timestamptz
   and (%(upto)s::text is null or pg_catalog.pg_visible_in_snapshot(piece.xid::text::xid8, %(upto)s::text::pg_snapshot))
   and piece.job_id not in (select over.job_id from over)
 order by piece.job_id, piece.version
