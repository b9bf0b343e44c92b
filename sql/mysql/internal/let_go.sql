drop procedure if exists rowq.internal_let_go;

delimiter //
create procedure rowq.internal_let_go(
    p_part_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    inout p_most_looks int,
    out p_again longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. p_again are the ids of those that need another look; p_most_looks is as for internal_unblock.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_follow_deaths
    declare v_failed longtext;
    call rowq.internal_unblock(
        p_part_id, p_message_ids, p_ended_id, p_owns_transaction, p_most_looks, p_again, v_failed
    );
    if v_failed is not null then
        call rowq.internal_follow_deaths(
            p_part_id, null, v_failed, p_owns_transaction, p_most_looks
        );
    end if;
end//
delimiter ;
