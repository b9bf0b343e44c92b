-- Not "if not exists": that asks for the right to create schemas even where there is nothing to do.
do $$
begin
    if to_regnamespace('rowq') is null then
        create schema rowq;
        comment on schema rowq is 'rowq message queue';
    end if;
end;
$$;

-- One number for a message and for its place in a lane. Cache 1: the floor of a lane relies on
-- numbers being given out in order (internal/move_floor.sql).
create sequence if not exists rowq.message_seq as bigint cache 1;

-- Claims and finished batches.
create sequence if not exists rowq.claim_seq as bigint cache 1;
