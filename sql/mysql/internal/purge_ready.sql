drop procedure if exists rowq.internal_purge_ready;

delimiter //
create procedure rowq.internal_purge_ready(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_ready
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- promise   P15
-- locks     ready rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_lane smallint default 0;
    declare v_from bigint default 0;
    declare v_step int;
    declare v_messages longtext;
    set p_removed = 0;

    lanes: while v_lane < 20 do
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave lanes;
        end if;
        call rowq.internal_lock_ready(
            p_part_id, v_lane, v_from, v_step, p_owns_transaction, v_messages
        );
        if v_messages is null then
            set v_lane = v_lane + 1, v_from = 0;
            iterate lanes;
        end if;
        -- Go on from the last row and not from the start, where the index still has the rows
        -- deleted so far.
        set v_from = json_extract(
            v_messages, concat('$[', json_length(v_messages) - 1, '][3]')
        );
        call rowq.internal_delete_ready(p_part_id, v_messages);
        call rowq.internal_finish(
            p_part_id, 0, true, v_messages, null, null, p_owns_transaction, 'cancelled'
        );
        set p_removed = p_removed + json_length(v_messages);
    end while;
end//
delimiter ;
