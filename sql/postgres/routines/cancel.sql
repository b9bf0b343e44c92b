create or replace function rowq.cancel(
    p_queue_name     text,
    p_message_ids    bigint[],
    p_include_leased boolean default false
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   cancel
-- version   1
-- purpose   Cancel messages that no worker holds, dead ones included.
-- promise   P15 P34
-- locks     claim rows, if include_leased, then delayed, dead, blocked, group_waiting and ready
--           rows, skipping locked ones; then as complete
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was retried or delayed is searched for among all ready messages of the
--           queue
#variable_conflict use_column
declare
    v_queue   rowq.queue;
    v_recorded bigint[] := '{}'::bigint[];
    v_ids     bigint[] := p_message_ids;
    v_unknown bigint[];
    v_from    bigint;
begin
    if p_message_ids is null then
        raise exception 'RQ711 invalid_argument: message_ids is required'
            using errcode = 'RQ711';
    end if;
    if not rowq.internal_is_id_list(p_message_ids) then
        raise exception
            'RQ711 invalid_argument: message_ids must be a list of at most 10000 ids without nulls'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    -- Check the claims first: leased messages are not searched for among the ready ones.
    if p_include_leased then
        v_recorded := rowq.internal_record_cancels(v_queue.queue_id, p_message_ids);
        v_ids := array(
            select u.message_id
            from unnest(p_message_ids) u (message_id)
            where u.message_id <> all (v_recorded)
        );
    end if;
    v_ids := rowq.internal_cancel_unleased(v_queue.queue_id, v_queue.archive_days, v_ids);

    -- A message without a body is unknown, and so is a finished message that waits for the
    -- archiver. All others are leased.
    v_from := rowq.internal_read_safe_floor(v_queue.queue_id, -3::smallint /* finished */);
    select coalesce(array_agg(u.message_id), '{}') into v_unknown
    from unnest(p_message_ids) u (message_id)
    where u.message_id <> all (v_ids)
      and u.message_id <> all (v_recorded)
      and (
          not exists (
              select 1
              from rowq.message m
              where m.queue_id = v_queue.queue_id
                and m.message_id = u.message_id
          )
          or exists (
              select 1
              from rowq.finished f
              where f.queue_id = v_queue.queue_id
                and f.finish_id >= v_from
                and u.message_id = any (f.message_ids)
          )
      );

    return query
    select u.message_id,
           case
               when u.message_id = any (v_ids) then 'cancelled'
               when u.message_id = any (v_recorded) then 'requested'
               when u.message_id = any (v_unknown) then 'not_found'
               else 'leased'
           end
    from unnest(p_message_ids) u (message_id);
end;
$$;
