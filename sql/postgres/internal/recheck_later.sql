create or replace function rowq.internal_recheck_later(
    p_part_id         integer,
    p_message_ids     bigint[],
    p_predecessor_ids bigint[],
    p_are_dead        boolean
)
returns void
language plpgsql
as $$
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, and at what waits for predecessors that have ended.
-- promise   P26
-- locks     new recheck rows
begin
    perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[] /* deferred */);
    insert into rowq.recheck (part_id, is_hint, due_at, message_id, predecessor_id)
    select p_part_id, u.predecessor_id is not null and p_are_dead, clock_timestamp(), u.message_id,
           u.predecessor_id
    from rows from (unnest(p_message_ids), unnest(p_predecessor_ids)) u (
        message_id, predecessor_id
    );
end;
$$;
