-- A row is one of the doors of a queue. Whoever adds a token to a group locks the group's door, the
-- one that a hash of its key names, and never changes it. A token that is not committed is visible
-- to nobody, an insert of the same one waits for its transaction, and this server has no limit for
-- that wait. So a worker, which must not wait for a producer, adds a token only where it can lock
-- the door. A producer goes on without the door: it may wait. It is the same with dedup keys that
-- are a schedule's, which maintain adds.
create table rowq_door (
    part_id number(10) not null,
    door_no number(2) not null,
    constraint rowq_door_pk primary key (part_id, door_no)
)
organization index initrans 64 pctfree 40
/
