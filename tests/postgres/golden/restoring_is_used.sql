select exists (select from "leasebook"."job_events")
    or exists (select from "leasebook"."jobs")
    or exists (select from "leasebook"."group_inbox")
    or exists (select from "leasebook"."audit_log")
