-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
create table if not exists rowq.message_group (
    part_id   integer not null,
    token_no  smallint not null,
    group_key text not null,
    constraint message_group_pk primary key (part_id, group_key, token_no)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0
);
