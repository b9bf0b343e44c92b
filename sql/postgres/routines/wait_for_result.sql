create or replace procedure rowq.wait_for_result(
    p_queue_name   text,
    p_message_id   bigint,
    p_wait_seconds double precision default 20,
    inout p_answer jsonb default null
)
language plpgsql
as $$
-- routine   wait_for_result
-- version   1
-- purpose   Return like get_result, but wait until the message has ended or the time is up.
-- promise   P17 P32
-- locks     none
-- commits   after each poll, so that no snapshot is held while it waits; requires autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   returns one JSON object; runs with the caller's rights, as only such a procedure may
--           commit
declare
    v_until timestamp with time zone;
    v_pause double precision;
begin
    -- Qualify every name and use no operator: this procedure runs with the caller's search_path.
    v_until := rowq.internal_wait_until(p_wait_seconds);
    call rowq.internal_require_autocommit('wait_for_result');

    loop
        select l.o_answer, l.o_pause
        into p_answer, v_pause
        from rowq.internal_poll_result(p_queue_name, p_message_id, v_until, v_pause) l;
        commit;

        exit when v_pause is null;
        perform pg_catalog.pg_sleep(v_pause);
    end loop;
end;
$$;
