create or replace function rowq.alter_message(
    p_queue_name     text,
    p_message_id     bigint,
    p_body           text default null,
    p_body_binary    bytea default null,
    p_message_type   text default null,
    p_headers        jsonb default null,
    p_priority       integer default null,
    p_delay_seconds  double precision default null,
    p_run_at         timestamp with time zone default null,
    p_max_attempts   integer default null,
    p_expire_seconds double precision default null
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_custom_plan
set jit = off
as $$
-- routine   alter_message
-- version   1
-- purpose   Change a waiting or dead message; null leaves a value unchanged.
-- promise   P15 P20 P21 P22 P36 P39
-- locks     a delayed, dead, blocked, group_waiting or ready row, skipped if locked; the message
--           row; new delayed, ready and expiry rows; as internal_release_group_slots
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
#variable_conflict use_column
declare
    v_queue      rowq.queue;
    v_error      text;
    v_now        timestamp with time zone;
    v_due_at     timestamp with time zone;
    v_expires_at timestamp with time zone;
    v_from       bigint;
    v_found      record;
begin
    v_error := case
        when p_message_id is null
            then 'message_id is required'
        when num_nonnulls(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds, p_run_at,
            p_max_attempts, p_expire_seconds
        ) = 0
            then 'at least one value to change is required'
        else rowq.internal_message_error(
            p_body, p_body_binary, p_message_type, p_headers, coalesce(p_priority, 5),
            p_delay_seconds, p_run_at, null, p_max_attempts, null, null, null,
            nullif(p_expire_seconds, 0), null
        )
    end;
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;
    v_queue := rowq.internal_require_queue(p_queue_name);
    v_error := rowq.internal_body_error(p_body, p_body_binary, v_queue.max_body_length);
    if v_error is not null then
        raise exception 'RQ711 invalid_argument: %', v_error
            using errcode = 'RQ711';
    end if;

    -- Get the transaction id before the clock: internal_move_floor relies on this order, and on no
    -- row having an earlier time than that clock.
    perform pg_current_xact_id();
    v_now := clock_timestamp();
    v_due_at := coalesce(p_run_at, v_now + make_interval(secs => p_delay_seconds));
    if v_due_at < v_now then
        v_due_at := v_now;
    end if;

    v_expires_at := v_now + make_interval(secs => nullif(p_expire_seconds, 0));

    message_id := p_message_id;
    v_found := rowq.internal_lock_waiting(v_queue.queue_id, p_message_id);
    if v_found.o_place = 'dead' and v_due_at is not null then
        outcome := 'dead';
    elsif v_found.o_place is not null then
        if num_nonnulls(
            p_body, p_body_binary, p_message_type, p_headers, p_max_attempts, p_expire_seconds
        ) > 0 then
            update rowq.message m
            set body         = case when p_body_binary is null then coalesce(p_body, m.body) end,
                body_binary  = case
                    when p_body is null then coalesce(p_body_binary, m.body_binary)
                end,
                message_type = coalesce(p_message_type, m.message_type),
                headers      = coalesce(p_headers, m.headers),
                max_attempts = coalesce(p_max_attempts, m.max_attempts),
                expires_at   = case
                    when p_expire_seconds is null then m.expires_at
                    else v_expires_at
                end
            where m.queue_id = v_queue.queue_id
              and m.message_id = p_message_id;
        end if;
        due_at := rowq.internal_alter_waiting(
            v_queue.queue_id, p_message_id, v_found.o_place, v_found.o_group_key, v_found.o_lane,
            v_found.o_seq, p_priority, v_due_at, v_now, p_expire_seconds > 0
        );
        outcome := 'altered';
    else
        -- A message without a body is unknown, and so is a finished message that waits for the
        -- archiver. All others are leased.
        v_from := rowq.internal_read_safe_floor(v_queue.queue_id, -3::smallint /* finished */);
        outcome := case
            when exists (
                select 1
                from rowq.message m
                where m.queue_id = v_queue.queue_id
                  and m.message_id = p_message_id
            )
            and not exists (
                select 1
                from rowq.finished f
                where f.queue_id = v_queue.queue_id
                  and f.finish_id >= v_from
                  and p_message_id = any (f.message_ids)
            )
                then 'leased'
            else 'not_found'
        end;
    end if;
    return next;
end;
$$;
