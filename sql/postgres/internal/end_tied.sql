create or replace function rowq.internal_end_tied(
    p_part_id     integer,
    p_message_ids bigint[],
    p_is_archived boolean,
    p_have_tokens boolean
)
returns void
language plpgsql
as $$
-- routine   internal_end_tied
-- purpose   Delete messages that have ended, unless the archive is to have them, and free what they had; leave to maintain those whose rows another transaction has locked.
-- promise   P04 P12 P22 P26
-- locks     as internal_delete_messages and internal_cut_ties; new recheck rows
declare
    v_gone record;
    v_ties text[];
begin
    if p_is_archived then
        v_ties := rowq.internal_read_ties(p_part_id, p_message_ids);
    else
        v_gone := rowq.internal_delete_messages(p_part_id, p_message_ids);
        v_ties := v_gone.o_ties;
        if v_gone.o_held is not null then
            -- A producer names one as a predecessor, perhaps, and may never commit. The message has
            -- ended all the same, so only its row is left, and what that producer adds.
            v_ties := v_ties || rowq.internal_read_ties(p_part_id, v_gone.o_held);
            perform rowq.internal_recheck_later(p_part_id, v_gone.o_held, v_gone.o_held, false);
        end if;
    end if;
    if v_ties is not null then
        perform rowq.internal_cut_ties(p_part_id, v_ties, p_message_ids, p_have_tokens);
    end if;
end;
$$;
