create or replace function rowq.internal_block_batch(
    p_part_id     integer,
    p_ties        rowq.blocked[],
    p_awaited_ids bigint[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_block_batch
-- purpose   Let new messages of a batch wait for their predecessors; return those that do, or have failed. p_awaited_ids are messages of the batch that others of it wait for.
-- promise   P25 P26 P27
-- locks     as internal_block and internal_let_go; new successor and blocked rows
declare
    v_tie     rowq.blocked;
    v_newest  bigint;
    v_late    bigint[];
    v_done    record;
    v_blocked bigint[] := '{}'::bigint[];
begin
    foreach v_tie in array p_ties
    loop
        v_newest := v_tie.rest_ids[cardinality(v_tie.rest_ids)];
        if v_newest = any (p_awaited_ids) then
            -- Nobody else sees this predecessor yet, so it needs no lock.
            insert into rowq.successor (part_id, predecessor_id, message_id)
            values (p_part_id, v_newest, v_tie.message_id);
            insert into rowq.blocked (
                part_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, rest_ids
            )
            values (
                p_part_id, v_tie.lane, v_tie.message_id, v_newest, v_tie.due_at, v_tie.on_dead,
                v_tie.group_key, nullif(array_remove(v_tie.rest_ids, v_newest), '{}')
            );
        elsif rowq.internal_block(
            p_part_id, v_tie.message_id, v_tie.lane, v_tie.due_at, v_tie.group_key, v_tie.rest_ids,
            v_tie.on_dead
        ) then
            -- One that has failed already is looked at by those of the batch that name it.
            if v_tie.on_dead = 'fail' and exists (
                select
                from rowq.dead d
                where d.part_id = p_part_id
                  and d.message_id = v_tie.message_id
            ) then
                p_awaited_ids := array_remove(p_awaited_ids, v_tie.message_id);
            end if;
        elsif v_tie.group_key is not null and v_tie.due_at is null then
            -- Its predecessors ended just now. This transaction must not wait for its group any
            -- more: whoever ends a predecessor that is held already waits for this transaction.
            insert into rowq.blocked (part_id, lane, message_id, on_dead, group_key)
            values (p_part_id, v_tie.lane, v_tie.message_id, v_tie.on_dead, v_tie.group_key);
            v_late := v_late || v_tie.message_id;
        else
            continue;
        end if;
        v_blocked := v_blocked || v_tie.message_id;
    end loop;

    if v_late is not null then
        v_done := rowq.internal_let_go(p_part_id, v_late, null, 10000);
        if v_done.o_again is not null then
            perform rowq.internal_recheck_later(p_part_id, v_done.o_again, null, false);
        end if;
    end if;
    return v_blocked;
end;
$$;
