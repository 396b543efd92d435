select exists (
       select from "leasebook"."workers" as w
        where w.id = %(worker)s and w.died_at is null)
   and not (select exists (
       select from "leasebook"."jobs" as j
        where j.state = 'leased' and j.worker = %(worker)s and j.format <= %(format)s))
