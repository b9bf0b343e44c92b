-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is 1 deletes its rows, in the same transaction.
create table rowq_successor (
    part_id        number(10) not null,
    predecessor_id number(19) not null,
    message_id     number(19) not null,
    constraint rowq_successor_pk primary key (part_id, predecessor_id, message_id)
)
organization index initrans 32
/
