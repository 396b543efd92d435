select exists (select from pg_catalog.pg_trigger as t
                where t.tgrelid = %(table)s::regclass and t.tgname = 'leasebook_cut_over')
