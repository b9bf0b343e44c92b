drop procedure if exists rowq.internal_end_tied;

delimiter //
create procedure rowq.internal_end_tied(
    p_part_id int,
    p_is_archived boolean,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_keyless longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_tied
-- purpose   Cut the ties of finished messages, and delete those that are not archived; p_is_keyed, p_tokenless and p_keyless are those of internal_finish.
-- promise   P04 P12 P22 P26
-- locks     as internal_read_ties, internal_release_dedup_keys and internal_cut_ties
-- differs   PostgreSQL learns of ties by the delete itself
    declare v_ties, v_freed, v_held, v_more longtext;
    declare v_keyed longtext default p_messages;

    if p_keyless is not null then
        -- Others may have the keys of these by now, and under the caller's repeatable read a look
        -- with a lock for a key that is not there would lock the gap around it.
        select json_arrayagg(json_array(j.message_id, null, null)) into v_keyed
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct a.message_id
            from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
        ) f on f.message_id = j.message_id
        where f.message_id is null;
    end if;

    -- What waits for a message of the archive and is not committed yet is left to internal_archive.
    call rowq.internal_read_ties(
        p_messages, p_tokenless, true, not (p_is_archived and p_owns_transaction), v_ties, v_held
    );
    set v_freed = v_ties;
    if p_keyless is not null then
        call rowq.internal_read_ties(
            v_keyed, null, true, not (p_is_archived and p_owns_transaction), v_freed, v_more
        );
    end if;
    if v_freed is not null and p_is_keyed then
        call rowq.internal_release_dedup_keys(p_part_id, v_freed);
    end if;
    if not p_is_archived then
        call rowq.internal_delete_messages(p_part_id, p_messages, v_held);
    end if;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;
