-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is in message.last_error. holds_group is 1 where it has kept the token of its group, and
-- else null.
create table rowq_dead (
    part_id     number(10) not null,
    message_id  number(19) not null,
    lane        number(2) not null,
    attempt     number(5) not null,
    died_at     timestamp(6) not null,
    holds_group number(1),
    constraint rowq_dead_pk primary key (part_id, message_id)
        using index (
            create unique index rowq_dead_pk on rowq_dead (part_id, message_id) initrans 32
        )
)
segment creation immediate
initrans 32
/
