drop procedure if exists rowq.internal_health_numbers;

delimiter //
create procedure rowq.internal_health_numbers(
    p_message_id bigint,
    p_claim_id bigint,
    inout p_checks longtext
)
sql security definer
reads sql data
begin
-- routine   internal_health_numbers
-- purpose   Append the check whether the numbers that come next are behind the newest ones stored.
-- promise   P08
-- differs   this engine's own
    -- A worker may hold a claim that is newer than any which was restored.
    declare c_margin int default 1000000;
    declare v_next_id, v_next_claim bigint;
    declare v_value bigint default 0;
    declare v_detail varchar(500);

    -- Ask for them after the rows, because messages may have come and ended meanwhile.
    call rowq.internal_next_numbers(v_next_id, v_next_claim);
    if p_message_id >= v_next_id then
        set v_value = p_message_id - v_next_id + 1,
            v_detail = concat(
                'alter table rowq.message auto_increment = ', p_message_id + c_margin, ';'
            );
    end if;
    if p_claim_id >= v_next_claim then
        set v_value = greatest(v_value, p_claim_id - v_next_claim + 1),
            v_detail = concat_ws(' ', v_detail, concat(
                'do benchmark(', p_claim_id - v_next_claim + c_margin, ', uuid_short());'
            ));
    end if;
    set p_checks = concat_ws(',', p_checks, json_array(
        'sequence_behind', null, v_value, 1, 1,
        coalesce(
            concat('ids that are in use would be given out again: ', v_detail),
            'all numbers are ahead of the ids that are stored'
        )
    ));
end//
delimiter ;
