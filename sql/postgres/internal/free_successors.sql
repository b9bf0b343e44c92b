create or replace function rowq.internal_free_successors(
    p_part_id         integer,
    p_predecessor_ids bigint[],
    inout p_most       integer default 1000,
    inout p_most_looks integer default 10000
)
language plpgsql
as $$
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for these, which have ended; leave to maintain those that cannot go on now, or are too many. p_most is for how many messages, p_most_looks as for internal_unblock, and then what of these is left.
-- promise   P26
-- locks     successor rows; as internal_let_go; new recheck rows
declare
    v_predecessor_id bigint;
    v_ids            bigint[];
    v_gone           record;
begin
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        -- An old snapshot does not show every message that waits.
        perform rowq.internal_recheck_later(p_part_id, null, p_predecessor_ids, false);
        return;
    end if;

    foreach v_predecessor_id in array p_predecessor_ids loop
        with cut as (
            delete from rowq.successor s
            where s.part_id = p_part_id
              and s.predecessor_id = v_predecessor_id
              and s.message_id = any (array(
                  select x.message_id
                  from rowq.successor x
                  where x.part_id = p_part_id
                    and x.predecessor_id = v_predecessor_id
                  order by x.part_id, x.predecessor_id, x.message_id
                  limit p_most
                  for update skip locked
              ))
            returning s.message_id
        )
        select array_agg(c.message_id order by c.message_id) into v_ids
        from cut c;
        if v_ids is not null then
            p_most := p_most - cardinality(v_ids);
            v_gone := rowq.internal_let_go(p_part_id, v_ids, v_predecessor_id, p_most_looks);
            p_most_looks := v_gone.p_most_looks;
            if v_gone.o_again is not null then
                perform rowq.internal_recheck_later(p_part_id, v_gone.o_again, null, false);
            end if;
        end if;
        if p_most = 0 then
            perform rowq.internal_recheck_later(
                p_part_id, null,
                p_predecessor_ids[array_position(p_predecessor_ids, v_predecessor_id):], false
            );
            return;
        end if;
    end loop;
end;
$$;
