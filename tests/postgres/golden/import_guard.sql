create trigger leasebook_cut_over before insert or update on "public"."old_queue"
   for each statement execute function "leasebook"."refuse_old_queue"('The ''hint''.')
;
alter table "public"."old_queue" enable always trigger leasebook_cut_over
