-- Arguments: what a call may pass.
--
-- A routine checks all arguments before it locks or writes, so a refused call changes nothing.
-- A *check* raises RQ711; an *error* helper returns the error or null, so that a batch can add the
-- position of the message. Bodies are compared by bytes first: counting bytes is free, and a text
-- never has more characters than bytes.
--
--   create_queue, alter_queue -> check_settings -> check_name, check_range
--   check_schedule -> check_name
--   retry_later, extend_lease, create_schedule, ... -> check_range
--   enqueue, parse_messages, check_schedule -> body_error
--   cancel, message_error, refuse_predecessors, lock_dead, ... -> is_id_list
--   maintain, reap, promote, ... -> check_batch_size
--
-- No table.

create or replace function rowq.internal_check_settings(
    p_queue_name           text,
    p_lease_seconds        integer,
    p_max_attempts         integer,
    p_backoff_base_seconds double precision,
    p_backoff_factor       double precision,
    p_backoff_cap_seconds  double precision,
    p_backoff_jitter       double precision,
    p_archive_days         integer,
    p_max_body_length      integer,
    p_group_limit          integer,
    p_group_after_dead     text,
    p_group_pause_seconds  double precision,
    p_max_leased           integer,
    p_rate_limit           integer,
    p_rate_seconds         double precision,
    p_result_seconds       double precision,
    p_history_days         integer
)
returns void
language plpgsql
as $$
-- purpose   Refuse an invalid queue name or setting; a null setting is valid.
-- errors    RQ711
begin
    perform rowq.internal_check_name('queue_name', p_queue_name);
    perform rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    perform rowq.internal_check_range('max_attempts', p_max_attempts, 0, 10000);
    perform rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    perform rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    perform rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    perform rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    perform rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    perform rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    perform rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    perform rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if p_group_after_dead not in ('continue', 'hold') then
        raise exception
            'RQ711 invalid_argument: group_after_dead must be continue or hold, got %',
            left(p_group_after_dead, 100)
            using errcode = 'RQ711';
    end if;
    perform rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    perform rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    perform rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    perform rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    perform rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end;
$$;

create or replace function rowq.internal_check_name(p_name text, p_value text)
returns void
language plpgsql
as $$
-- purpose   Refuse an invalid name of a queue or schedule; p_name is the parameter.
-- errors    RQ711
begin
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value ~ '[[:cntrl:]]' then
        raise exception
            'RQ711 invalid_argument: % must be 1 to 100 characters without control characters',
            p_name
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_check_range(
    p_name  text,
    p_value double precision,
    p_low   double precision,
    p_high  double precision
)
returns void
language plpgsql
as $$
-- purpose   Refuse a number outside its range; null is valid.
-- errors    RQ711
begin
    if not p_value between p_low and p_high then
        raise exception 'RQ711 invalid_argument: % must be between % and %, got %',
            p_name, p_low, p_high, p_value
            using errcode = 'RQ711';
    end if;
end;
$$;

create or replace function rowq.internal_body_error(
    p_body        text,
    p_body_binary bytea,
    p_max_length  integer
)
returns text
language plpgsql
as $$
-- purpose   Return the error if a body is too long, or null.
declare
    v_length constant integer := greatest(char_length(p_body), octet_length(p_body_binary));
begin
    if v_length > p_max_length then
        return format(
            'body must be at most %s characters (max_body_length), got %s', p_max_length, v_length
        );
    end if;
    return null;
end;
$$;

create or replace function rowq.internal_is_id_list(p_message_ids bigint[])
returns boolean
language plpgsql
as $$
-- purpose   Return whether a list has at most 10000 ids and no nulls; null is valid.
begin
    return p_message_ids is null
        or cardinality(p_message_ids) <= 10000
        and coalesce(array_ndims(p_message_ids), 1) = 1
        and array_position(p_message_ids, null) is null;
end;
$$;

create or replace function rowq.internal_check_batch_size(p_batch_size integer)
returns void
language plpgsql
as $$
-- purpose   Refuse a maintenance batch_size outside 1 to 10000.
-- errors    RQ711
begin
    if p_batch_size is null or p_batch_size not between 1 and 10000 then
        raise exception 'RQ711 invalid_argument: batch_size must be between 1 and 10000, got %',
            p_batch_size
            using errcode = 'RQ711';
    end if;
end;
$$;
