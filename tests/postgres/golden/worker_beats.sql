select w.id, w.beats from "leasebook"."workers" as w where w.died_at is null
