select "leasebook"."summarize_log"()
