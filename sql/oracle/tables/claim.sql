-- A row is one successful dequeue: the lease of a whole batch, whose messages are in rowq_leased. A
-- heartbeat changes only lease_until, which is in no index. claim_id is the fencing token, and
-- finish_id of rowq_finished comes from the same sequence. Who cancels messages of the batch sets
-- has_cancels to 1, each time anew: a heartbeat reads it, and a serializable transaction that does
-- not see what was cancelled cannot lock or delete the row then (ORA-08177). progress is null until
-- a heartbeat says it; it is a CLOB, because 2000 characters may take more bytes than a varchar2.
create table rowq_claim (
    part_id     number(10) not null,
    claim_id    number(19) not null,
    leased_at   timestamp(6) not null,
    lease_until timestamp(6) not null,
    worker_name varchar2(200 char),
    has_cancels number(1),
    progress    clob,
    constraint rowq_claim_pk primary key (part_id, claim_id)
        using index (
            create unique index rowq_claim_pk on rowq_claim (part_id, claim_id) initrans 32
        )
)
segment creation immediate
initrans 32 pctfree 20
lob (progress) store as securefile rowq_claim_progress (enable storage in row cache)
/
create sequence rowq_claim_seq start with 1 increment by 1 cache 1000 noorder
/
