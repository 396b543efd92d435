select pg_catalog.count(*) from "leasebook"."group_inbox"
