drop procedure if exists rowq.internal_cut_ties;

delimiter //
create procedure rowq.internal_cut_ties(
    p_part_id int,
    p_ties longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_cut_ties
-- purpose   Pass on the tokens of messages that have ended, and let those go on that have waited for them; internal_read_ties has returned what they are.
-- promise   P22 P26
-- locks     as internal_leave_groups and internal_free_successors
    declare v_message_id bigint;
    declare v_is_end boolean default false;
    declare v_most int default 1000;
    declare v_looks int default 10000;
    declare each_awaited cursor for
        select j.message_id
        from json_table(
            p_ties,
            '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[3]')
        ) j
        where j.is_awaited
        order by j.message_id;
    declare continue handler for not found set v_is_end = true;

    call rowq.internal_leave_groups(p_part_id, p_ties, p_owns_transaction);
    open each_awaited;
    set v_is_end = false;
    awaited: loop
        fetch each_awaited into v_message_id;
        if v_is_end then
            leave awaited;
        end if;
        call rowq.internal_free_successors(
            p_part_id, v_message_id, p_owns_transaction, v_most, v_looks
        );
        set v_is_end = false;
    end loop;
    close each_awaited;
end//
delimiter ;
