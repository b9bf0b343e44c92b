-- Look first, because "create schema if not exists" asks for the right to create schemas even where
-- there is nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

-- This sequence numbers a message and its place in a lane. It has cache 1, because the floor of a
-- lane relies on numbers being given out in order (internal/move_floor.sql).
create sequence if not exists rowq.message_seq as bigint cache 1;

-- This sequence numbers claims and finished batches.
create sequence if not exists rowq.claim_seq as bigint cache 1;
