-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready under a new number or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires.
create table if not exists rowq.expiry (
    part_id    integer not null,
    lane       smallint,
    expires_at timestamp with time zone not null,
    expiry_id  bigint not null default nextval('rowq.claim_seq'),
    message_id bigint not null,
    seq        bigint,
    constraint expiry_pk primary key (part_id, expires_at, expiry_id)
) with (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);
