create or replace function rowq.explain_message(p_queue_name text, p_message_id bigint)
returns table (
    reason      text,
    clears_at   timestamp with time zone,
    blocking_id bigint,
    claim_id    bigint,
    worker_name text,
    detail      text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   explain_message
-- version   1
-- purpose   Return the reasons why a message is not delivered now, and what would change them.
-- promise   P42
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   held names the session that has the message
#variable_conflict use_column
declare
    v_now        constant timestamp with time zone := clock_timestamp();
    v_queue      rowq.queue;
    v_place      record;
    v_ended      text;
    v_expires_at timestamp with time zone;
    v_due_at     timestamp with time zone;
begin
    if p_message_id is null then
        raise exception 'RQ711 invalid_argument: message_id is required'
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);

    select m.expires_at into v_expires_at
    from rowq.message m
    where m.queue_id = v_queue.queue_id
      and m.message_id = p_message_id;
    v_place := rowq.internal_locate_messages(v_queue.queue_id, p_message_id);
    if v_place.state is null then
        select coalesce(
                   (
                       select a.state
                       from rowq.archive a
                       where a.queue_id = v_queue.queue_id
                         and a.message_id = p_message_id
                       limit 1
                   ),
                   (
                       select r.state
                       from rowq.result r
                       where r.queue_id = v_queue.queue_id
                         and r.message_id = p_message_id
                   )
               )
        into v_ended;
    elsif v_place.state in ('completed', 'cancelled', 'expired') then
        v_ended := v_place.state;
    end if;

    for reason, clears_at, blocking_id, claim_id, worker_name, detail in
        select 'unknown', null::timestamp with time zone, null::bigint, null::bigint, null::text,
               'it is not in the queue: not committed, rolled back, or ended with nothing kept'
        where v_place.state is null
          and v_ended is null
        union all
        select 'ended', null, null, null, null, 'it has ended: ' || v_ended
        where v_ended is not null
        union all
        select 'dead', null, null, null, null, 'it is dead; reset makes it ready'
        where v_place.state = 'dead'
        union all
        select case
                   when v_place.claim_id is null then 'held'
                   when v_place.lease_until <= v_now then 'lease_expired'
                   else 'leased'
               end,
               v_place.lease_until, null, v_place.claim_id, v_place.worker_name,
               case
                   when v_place.claim_id is null
                       then 'another session is moving it in an open transaction'
                   when v_place.lease_until <= v_now
                       then 'its lease has expired; the next maintain returns it'
                   else 'a worker holds it until the worker finishes it or its lease expires'
               end
        where v_place.state = 'leased'
        union all
        select 'paused', null, null, null, null, 'the queue is paused; resume_queue ends the pause'
        where v_place.state in ('ready', 'delayed', 'blocked')
          and v_queue.paused_at is not null
        union all
        select b.reason, b.clears_at, b.blocking_id, b.claim_id, b.worker_name, b.detail
        from rowq.internal_explain_blocked(v_queue, p_message_id) b
        where v_place.state = 'blocked'
        union all
        select case when v_place.due_at > v_now then 'delayed' else 'overdue' end, v_place.due_at,
               null, null, null,
               case
                   when v_place.due_at > v_now
                       then 'it waits for its time; alter_message changes it'
                   else 'its time has come; the next maintain makes it ready'
               end
        where v_place.state = 'delayed'
           or v_place.state = 'blocked'
          and v_place.due_at > v_now
        union all
        select r.reason, r.clears_at, r.blocking_id, r.claim_id, r.worker_name, r.detail
        from rowq.internal_explain_ready(v_queue, p_message_id, v_place.lane) r
        where v_place.state = 'ready'
        union all
        select 'expires', v_expires_at, null, null, null, 'maintain expires it from this time on'
        where v_place.state in ('ready', 'delayed', 'blocked')
          and v_expires_at is not null
    loop
        return next;
        v_due_at := least(v_due_at, clears_at);
    end loop;

    if v_due_at < v_now - interval '5 seconds' then
        reason := 'no_maintain';
        clears_at := null;
        blocking_id := null;
        claim_id := null;
        worker_name := null;
        detail := 'maintain is late by more than 5 seconds; run a worker, or call maintain';
        return next;
    end if;
end;
$$;
