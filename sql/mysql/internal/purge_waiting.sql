drop procedure if exists rowq.internal_purge_waiting;

delimiter //
create procedure rowq.internal_purge_waiting(
    p_part_id int,
    p_of_dead boolean,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_waiting
-- purpose   Delete up to p_limit delayed messages, or dead ones; null means all.
-- promise   P15
-- locks     delayed or dead rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6);
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_ids, v_messages, v_tokenless, v_keyless longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step)), v_before = v_after;
        if v_step <= 0 then
            leave steps;
        end if;
        if p_of_dead then
            select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_after_id
            from (
                select d.message_id
                from rowq.dead d force index (primary)
                where d.part_id = p_part_id
                  and d.message_id > v_after_id
                order by d.part_id, d.message_id
                limit v_step
            ) h;
        else
            select json_arrayagg(h.message_id), max(h.due_at) into v_ids, v_after
            from (
                select d.message_id, d.due_at
                from rowq.delayed d force index (primary)
                where d.part_id = p_part_id
                  and d.due_at >= v_after
                  and d.message_id > 0
                order by d.part_id, d.due_at, d.message_id
                limit v_step
            ) h;
        end if;
        if v_ids is null then
            leave steps;
        end if;

        call rowq.internal_pop_waiting(p_part_id, v_ids, v_messages, v_tokenless, v_keyless);
        if v_messages is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_messages, v_tokenless, v_keyless, p_owns_transaction,
                'cancelled'
            );
            set p_removed = p_removed + json_length(v_messages);
        elseif not p_of_dead and v_after = v_before then
            -- All rows of this step have the same due_at and are locked by other sessions, so that
            -- the next step would find the same rows.
            leave steps;
        end if;
    end loop;
end//
delimiter ;
