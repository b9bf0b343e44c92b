create or replace function rowq.complete(
    p_queue_name  text,
    p_claim_id    bigint,
    p_message_ids bigint[] default null,
    p_results     jsonb default null
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
-- routine   complete
-- version   1
-- purpose   Finish messages: delete or archive them, and never deliver them again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37 P49
-- locks     the claim row first; then new history rows; dedup rows; message rows, rows of groups
--           and of waiting messages, skipping locked ones
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
#variable_conflict use_column
declare
    v_queue_id       integer;
    v_archive_days   integer;
    v_result_seconds double precision;
    v_history_days   integer;
    v_message_ids    bigint[];
    v_lanes          smallint[];
    v_attempts       smallint[];
    v_message_id     bigint;
    v_dedup_key      text;
    v_group_key      text;
    v_is_awaited     boolean;
    v_worker_name    text;
    v_leased_at      timestamp with time zone;
    v_last_id        bigint;
    v_count          integer;
    v_rest           bigint[];
begin
    select q.queue_id, q.archive_days, q.result_seconds, q.history_days
    into v_queue_id, v_archive_days, v_result_seconds, v_history_days
    from rowq.queue q
    where q.queue_name = p_queue_name;
    if not found then
        perform rowq.internal_refuse_queue(p_queue_name);
    end if;

    if p_results is not null then
        perform rowq.internal_check_results(
            p_results, coalesce(cardinality(p_message_ids), 1), v_result_seconds
        );
    end if;

    -- Usually the whole claim is completed, which takes one statement. internal_pop_claimed handles
    -- the other cases, and returns what the history needs.
    if v_history_days = 0 then
        delete from rowq.claim c
        where c.queue_id = v_queue_id
          and c.claim_id = p_claim_id
          and (p_message_ids is null or c.message_ids = p_message_ids)
        returning c.message_ids, c.lanes, c.attempts into v_message_ids, v_lanes, v_attempts;
    end if;

    -- Remove one message of a larger claim from the arrays without reading them: only the archive
    -- and the history need its lane and attempt.
    if v_message_ids is null and cardinality(p_message_ids) = 1
       and v_archive_days + v_history_days = 0 then
        v_message_id := p_message_ids[1];
        update rowq.claim c
        set message_ids = array_remove(c.message_ids, v_message_id),
            lanes       = c.lanes[:array_position(c.message_ids, v_message_id) - 1]
                       || c.lanes[array_position(c.message_ids, v_message_id) + 1:],
            attempts    = c.attempts[:array_position(c.message_ids, v_message_id) - 1]
                       || c.attempts[array_position(c.message_ids, v_message_id) + 1:],
            errors      = c.errors[:array_position(c.message_ids, v_message_id) - 1]
                       || c.errors[array_position(c.message_ids, v_message_id) + 1:],
            cancel_ids  = nullif(array_remove(c.cancel_ids, v_message_id), '{}')
        where c.queue_id = v_queue_id
          and c.claim_id = p_claim_id
          and array_position(c.message_ids, v_message_id) is not null
          and cardinality(c.message_ids) > 1;
        if found then
            v_message_ids := p_message_ids;
        end if;
    end if;

    if v_message_ids is null then
        select t.o_message_ids, t.o_lanes, t.o_attempts, t.o_worker_name, t.o_leased_at
        into v_message_ids, v_lanes, v_attempts, v_worker_name, v_leased_at
        from rowq.internal_pop_claimed(v_queue_id, p_claim_id, p_message_ids) t;
    end if;

    if p_results is not null and p_message_ids is null and cardinality(v_message_ids) > 1 then
        raise exception
            'RQ711 invalid_argument: '
            'results without message_ids requires a claim of exactly one message'
            using errcode = 'RQ711';
    end if;

    if v_history_days > 0 then
        perform rowq.internal_push_history(
            v_queue_id, p_claim_id, v_worker_name, v_leased_at, v_message_ids, v_attempts,
            'completed'
        );
    end if;

    -- deletion: copied to complete_and_dequeue by make generate
    -- Delete one message without an archive here: internal_finish would cost more statements. A row
    -- that was never locked has xmax 0, and deleting it does not wait; internal_end_linked takes
    -- any other row.
    if v_archive_days = 0 and cardinality(v_message_ids) = 1 then
        delete from rowq.message m
        where m.queue_id = v_queue_id
          and m.message_id = v_message_ids[1]
          and m.xmax = 0
        returning m.dedup_key, m.group_key, m.has_successors
        into v_dedup_key, v_group_key, v_is_awaited;
        if not found then
            perform rowq.internal_end_linked(v_queue_id, v_message_ids, false, true);
        elsif v_dedup_key is not null or v_group_key is not null or v_is_awaited then
            perform rowq.internal_release_links(
                v_queue_id,
                array[array[
                    v_dedup_key, v_group_key, case when v_is_awaited then v_message_ids[1]::text end
                ]],
                v_message_ids, true
            );
        end if;
    elsif v_message_ids <> '{}' then
        -- Delete a batch here as well, except messages with links, which internal_finish ends.
        v_rest := v_message_ids;
        v_last_id := v_message_ids[cardinality(v_message_ids)];
        if v_archive_days = 0 and v_last_id - v_message_ids[1] between 0 and 10000 then
            delete from rowq.message m
            where m.queue_id = v_queue_id
              and m.message_id between v_message_ids[1] and v_last_id
              and m.message_id = any (v_message_ids)
              and m.xmax = 0
              and m.dedup_key is null
              and m.group_key is null
              and m.has_successors is null;
            get diagnostics v_count = row_count;
            if v_count = cardinality(v_message_ids) then
                v_rest := '{}';
            else
                v_rest := array(
                    select m.message_id
                    from rowq.message m
                    where m.queue_id = v_queue_id
                      and m.message_id between v_message_ids[1] and v_last_id
                      and m.message_id = any (v_message_ids)
                );
                -- The bounds miss messages of a claim that is not in the order of ids: [3, 9, 4].
                if v_count + cardinality(v_rest) < cardinality(v_message_ids) then
                    v_rest := v_message_ids;
                end if;
            end if;
        end if;
        if v_rest <> '{}' then
            perform rowq.internal_finish(
                v_queue_id, v_archive_days, v_rest, v_lanes, v_attempts, 'completed'
            );
        end if;
    end if;
    -- end of deletion

    if v_result_seconds > 0 or cardinality(v_message_ids) > 1 then
        if v_result_seconds > 0 and v_message_ids <> '{}' then
            perform rowq.internal_push_result(
                v_queue_id, v_message_ids, 'completed', null, p_results,
                coalesce(p_message_ids, v_message_ids)
            );
        end if;
        -- Usually no message is stale: a query returns these rows at less cost than the loop below.
        if cardinality(v_message_ids) > 1
           and coalesce(p_message_ids, v_message_ids) = v_message_ids then
            return query select unnest(v_message_ids), 'completed';
            return;
        end if;
    end if;

    foreach message_id in array coalesce(p_message_ids, v_message_ids) loop
        outcome := case when message_id = any (v_message_ids) then 'completed' else 'stale' end;
        return next;
    end loop;
end;
$$;
