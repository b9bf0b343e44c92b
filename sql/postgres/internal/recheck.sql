create or replace function rowq.internal_recheck(
    p_part_id     integer,
    p_limit       integer,
    p_may_reorder boolean default false
)
returns integer
language plpgsql
as $$
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough. p_may_reorder: what stays may be put behind what was not looked at.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_pass_groups, internal_widen_group,
--           internal_let_go, internal_free_successors, internal_recheck_death and
--           internal_delete_messages
declare
    -- A predecessor is looked for in two microseconds, and a message is freed in some sixty.
    c_looks       constant integer := 50;
    -- The moment is a constant, so that the scan stops at the last row that is due.
    v_now         constant timestamp with time zone := clock_timestamp();
    v_floor       bigint;
    v_note        record;
    v_due_ats     timestamp with time zone[];
    v_recheck_ids bigint[];
    v_message_ids bigint[];
    v_seen_ats    timestamp with time zone[];
    v_seen_ids    bigint[];
    v_ended_id    bigint;
    v_gone        record;
    v_budget      record;
    v_done        record;
    v_count       integer;
    v_solved      integer := 0;
begin
    -- Only a queue that has left a token has this lane.
    select f.seq into v_floor
    from rowq.floor f
    where f.part_id = p_part_id
      and f.lane = -4 /* deferred */
    order by f.part_id, f.lane, f.generation
    limit 1;
    if not found then
        return 0;
    end if;

    select p_limit as p_most, c_looks * p_limit as p_most_looks into v_budget;
    for v_note in
        select r.due_at, r.recheck_id, r.is_hint, r.message_id, r.predecessor_id, r.group_key
        from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at >= rowq.internal_from_microseconds(v_floor)
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit p_limit
        for update skip locked
    loop
        v_seen_ats := v_seen_ats || v_note.due_at;
        v_seen_ids := v_seen_ids || v_note.recheck_id;
        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if v_note.group_key is null then
            -- An old snapshot does not show what has happened since.
            continue when current_setting('transaction_isolation')
                not in ('read committed', 'read uncommitted');
            -- Others have used up what one call may do: leave these to the next call.
            continue when v_note.predecessor_id is not null
                and least(v_budget.p_most, v_budget.p_most_looks) = 0;
            v_ended_id := v_note.predecessor_id;
            if v_note.message_id = v_note.predecessor_id then
                -- It has ended, and its row was locked. Its keys were freed then.
                v_gone := rowq.internal_delete_messages(p_part_id, array[v_note.message_id]);
                continue when v_gone.o_held is not null;
                v_ended_id := v_gone.o_ties[1][3];
            elsif v_note.message_id is not null then
                v_due_ats := v_due_ats || v_note.due_at;
                v_recheck_ids := v_recheck_ids || v_note.recheck_id;
                v_message_ids := v_message_ids || v_note.message_id;
                continue;
            elsif v_note.is_hint then
                v_done := rowq.internal_recheck_death(
                    p_part_id, v_note.predecessor_id, v_budget.p_most_looks
                );
                v_budget.p_most_looks := v_done.p_most_looks;
                continue when not v_done.o_is_done;
                v_ended_id := null;
            end if;
            if v_ended_id is not null then
                v_budget := rowq.internal_free_successors(
                    p_part_id, array[v_ended_id], v_budget.p_most, v_budget.p_most_looks
                );
            end if;
        elsif v_note.is_hint then
            continue when not rowq.internal_widen_group(p_part_id, v_note.group_key);
        else
            continue when rowq.internal_pass_groups(
                p_part_id, array[v_note.group_key], true
            ) is not null;
        end if;
        delete from rowq.recheck r
        where r.part_id = p_part_id
          and r.due_at = v_note.due_at
          and r.recheck_id = v_note.recheck_id;
        v_solved := v_solved + 1;
    end loop;

    -- One call for all of the messages waits once for a producer that opens their group.
    if v_message_ids is not null then
        v_done := rowq.internal_let_go(
            p_part_id,
            array(
                select distinct u.message_id from unnest(v_message_ids) u (message_id) order by 1
            ),
            null, v_budget.p_most_looks
        );
        delete from rowq.recheck r
        using unnest(v_due_ats, v_recheck_ids, v_message_ids) u (due_at, recheck_id, message_id)
        where r.part_id = p_part_id
          and r.due_at = u.due_at
          and r.recheck_id = u.recheck_id
          and u.message_id <> all (coalesce(v_done.o_again, '{}'));
        get diagnostics v_count = row_count;
        v_solved := v_solved + v_count;
    end if;

    -- But where there are so many of these that others were not looked at, put them behind those.
    if p_may_reorder and cardinality(v_seen_ids) >= p_limit and v_solved < p_limit and exists (
        select
        from rowq.recheck r
        where r.part_id = p_part_id
          and (r.due_at, r.recheck_id) > (v_seen_ats[p_limit], v_seen_ids[p_limit])
          and r.due_at <= v_now
    ) then
        for v_note in
            select u.due_at, u.recheck_id
            from unnest(v_seen_ats, v_seen_ids) u (due_at, recheck_id)
        loop
            update rowq.recheck r
            set due_at = v_now
            where r.part_id = p_part_id
              and r.due_at = v_note.due_at
              and r.recheck_id = v_note.recheck_id;
        end loop;
    end if;
    return v_solved;
end;
$$;
