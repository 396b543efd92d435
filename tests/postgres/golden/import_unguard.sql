drop trigger if exists leasebook_cut_over on "public"."old_queue"
