-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Its last error is in rowq_message, and it has no attempt yet.
create table rowq_grouped (
    part_id    number(10) not null,
    group_key  raw(800) not null,
    message_id number(19) not null,
    lane       number(2) not null,
    constraint rowq_grouped_pk primary key (part_id, group_key, message_id)
)
organization index initrans 32
/
