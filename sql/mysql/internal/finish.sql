drop procedure if exists rowq.internal_finish;

delimiter //
create procedure rowq.internal_finish(
    p_part_id int,
    p_archive_days int,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_keyless longtext,
    p_owns_transaction boolean,
    p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; p_is_keyed is false where none has a key, those in p_tokenless have no token of their group, and those in p_keyless no dedup key any more.
-- promise   P04 P12 P22 P26 P32
-- locks     as internal_end_tied and internal_end_awaited; result rows
    declare v_rest, v_slice longtext;

    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), p_state, p_messages);
    end if;
    if p_archive_days > 0 or p_is_keyed then
        set v_rest = p_messages;
        while v_rest is not null do
            call rowq.internal_next_slice(v_rest, v_slice);
            call rowq.internal_end_tied(
                p_part_id, p_archive_days > 0, p_is_keyed, v_slice, p_tokenless, p_keyless,
                p_owns_transaction
            );
        end while;
    else
        call rowq.internal_end_awaited(p_part_id, p_messages, p_owns_transaction);
    end if;
    -- What was completed has results of its own, which complete keeps.
    if p_state <> 'completed' then
        call rowq.internal_push_result(p_part_id, p_messages, p_state, null, null, null);
    end if;
end//
delimiter ;
