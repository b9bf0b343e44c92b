create or replace function rowq.internal_refuse_predecessors(
    p_position        bigint,
    p_first_id        bigint,
    p_predecessor_ids bigint[],
    p_positions       integer[],
    p_on_dead         text
)
returns void
language plpgsql
as $$
-- routine   internal_refuse_predecessors
-- purpose   Refuse a message of enqueue_batch, whose first message is p_first_id, for bad predecessors.
-- promise   P15
-- errors    RQ711
declare
    v_fault text;
begin
    v_fault := coalesce(
        rowq.internal_message_fault(
            null, null, null, null, 5, null, null, null, null, null, p_predecessor_ids, p_on_dead,
            null
        ),
        case
            when p_first_id <= any (p_predecessor_ids)
                then 'predecessor_ids must name messages that are there'
            when not rowq.internal_is_id_list(p_positions)
                 or 1 > any (p_positions)
                 or p_position <= any (p_positions)
                then 'predecessor_positions must be a flat list of places before the message''s own'
        end
    );
    if v_fault is not null then
        raise exception 'RQ711 invalid_argument: % (message %)', v_fault, p_position
            using errcode = 'RQ711';
    end if;
end;
$$;
