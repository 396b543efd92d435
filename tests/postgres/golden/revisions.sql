
select version_num from "leasebook"."leasebook_version" order by version_num
