-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds.
create table rowq_started (
    part_id    number(10) not null,
    started_at timestamp(6) not null,
    claim_id   number(19) not null,
    messages   number(5) not null,
    constraint rowq_started_pk primary key (part_id, started_at, claim_id)
)
organization index initrans 32
/
