update "leasebook"."workers"
   set beats = beats + 1, beat_at = pg_catalog.clock_timestamp()
 where id = %(worker)s and died_at is null
returning pg_catalog.set_config('synchronous_commit', 'off', true)
