-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due, and the only index. group_key is of one
-- that joins its group when it is due; one that is retried has its token, and none here.
create table rowq_delayed (
    part_id    number(10) not null,
    due_at     timestamp(6) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    attempt    number(5) default 0 not null,
    group_key  varchar2(200 char),
    constraint rowq_delayed_pk primary key (part_id, due_at, message_id)
        using index (
            create unique index rowq_delayed_pk on rowq_delayed (part_id, due_at, message_id)
            initrans 32 pctfree 10
        )
)
segment creation immediate
initrans 32 pctfree 20
/
