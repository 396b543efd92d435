select exists (
       select from "leasebook"."jobs" as j
        where j.state = 'leased' and j.worker = %(worker)s and j.format <= %(format)s)
