-- Order, effects and aborts.  The migration fills in the schema's quoted name.
--
-- Sections are steps as in 0002: each is one short transaction, does nothing where it was done before,
-- and changes the catalog only.  Indexes of existing tables are in 0003_order.py.

-- step: order, effects and aborts of jobs
alter table @schema@.jobs
    add column if not exists on_expired   text,
    add column if not exists ordering_key text,
    add column if not exists on_hold      text,
    add column if not exists after        uuid,
    add column if not exists sequence     bigint,
    add column if not exists blocked_by   uuid,
    add column if not exists blocked_due  timestamptz,
    add column if not exists effects      json,
    add column if not exists has_waiter   boolean not null default false;

-- step: places of items in the order of their key
alter table @schema@.group_inbox
    add column if not exists ordering_key text,
    add column if not exists sequence     bigint;
