-- A row is a message of a claim, and the key is the order of delivery. A message is always taken
-- through its claim, which is locked first, so nobody waits for a row here. The table is
-- index-organized, because a row is its key and a few bytes more, and is written and deleted once.
-- is_cancelled is 1 for a message that was cancelled while the worker had it, and else null.
create table rowq_leased (
    part_id      number(10) not null,
    claim_id     number(19) not null,
    place        number(5) not null,
    message_id   number(19) not null,
    lane         number(2) not null,
    attempt      number(5) not null,
    is_cancelled number(1),
    constraint rowq_leased_pk primary key (part_id, claim_id, place)
)
organization index initrans 32
/
