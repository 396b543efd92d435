set local lock_timeout = '5s';
lock table "leasebook"."jobs" in share update exclusive mode;
lock table "leasebook"."jobs_shadow" in access exclusive mode;
