create or replace function rowq.internal_finish(
    p_part_id      integer,
    p_archive_days integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_state        text,
    p_tokenless    bigint[] default null
)
returns void
language plpgsql
as $$
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; those in p_tokenless have no token of their group.
-- promise   P04 P12 P22 P32
-- locks     as internal_end_tied; result rows
declare
    v_rest bigint[] := p_message_ids;
begin
    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, message_ids, lanes, attempts, state)
        values (p_part_id, clock_timestamp(), p_message_ids, p_lanes, p_attempts, p_state);
    end if;

    if p_tokenless is not null then
        perform rowq.internal_end_tied(p_part_id, p_tokenless, p_archive_days > 0, false);
        v_rest := array(
            select u.message_id
            from unnest(p_message_ids) u (message_id)
            where u.message_id <> all (p_tokenless)
        );
    end if;

    perform rowq.internal_end_tied(p_part_id, v_rest, p_archive_days > 0, true);

    -- What was completed has results of its own, which complete keeps.
    if p_state <> 'completed' then
        perform rowq.internal_push_result(p_part_id, p_message_ids, p_state);
    end if;
end;
$$;
