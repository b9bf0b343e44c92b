create or replace function rowq.internal_finish(
    p_part_id      integer,
    p_archive_days integer,
    p_message_ids  bigint[],
    p_lanes        smallint[],
    p_attempts     smallint[],
    p_state        text
)
returns void
language plpgsql
as $$
-- routine   internal_finish
-- version   1
-- purpose   Remove finished messages, or note them for the archive.
-- promise   P04 P12
-- locks     message rows; dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_keys text[];
begin
    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, message_ids, lanes, attempts, state)
        values (p_part_id, clock_timestamp(), p_message_ids, p_lanes, p_attempts, p_state);
        perform rowq.internal_release_dedup_keys(p_part_id, p_message_ids);
        return;
    end if;

    v_keys := rowq.internal_delete_messages(p_part_id, p_message_ids);
    if v_keys is not null then
        perform rowq.internal_delete_dedup_keys(p_part_id, v_keys, p_message_ids);
    end if;
end;
$$;
