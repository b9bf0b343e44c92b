-- A row is what the producer handed over. It is written once and deleted once; only a failure
-- updates last_error and due_at, and who names the message as a predecessor sets has_successors to
-- 1, each time anew: a serializable transaction that does not see who waits cannot lock or delete
-- the row then (ORA-08177). lane and seq find a message that was never given back, because they are
-- its first place in ready. due_at is the last place that the message had in delayed. The foreign
-- key needs no index of its own, because part_id stands first in the primary key; it makes an
-- insert fail that has waited for drop_queue. An empty text body is an empty CLOB, which is not
-- null. expires_at never changes, and is null for a message that does not expire. A LOB of up to
-- about 4000 bytes is kept in the row, a longer one beside it.
create table rowq_message (
    part_id        number(10) not null,
    message_id     number(19) not null,
    max_attempts   number(5),
    lane           number(2) not null,
    seq            number(19) not null,
    enqueued_at    timestamp(6) not null,
    due_at         timestamp(6),
    message_type   varchar2(200 char),
    dedup_key      varchar2(200 char),
    headers        clob,
    body           clob,
    body_binary    blob,
    last_error     clob,
    group_key      varchar2(200 char),
    has_successors number(1),
    expires_at     timestamp(6),
    constraint rowq_message_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_message_pk on rowq_message (part_id, message_id) initrans 32
        ),
    constraint rowq_message_queue_fk foreign key (part_id) references rowq_queue (part_id),
    constraint rowq_message_headers_ck check (headers is json strict)
)
segment creation immediate
initrans 32 pctfree 10
lob (headers) store as securefile rowq_message_headers (enable storage in row cache)
lob (body) store as securefile rowq_message_body (enable storage in row cache)
lob (body_binary) store as securefile rowq_message_binary (enable storage in row cache)
lob (last_error) store as securefile rowq_message_error (enable storage in row cache)
/
create sequence rowq_message_seq start with 1 increment by 1 cache 1000 noorder
/
