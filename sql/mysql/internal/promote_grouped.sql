drop procedure if exists rowq.internal_promote_grouped;

delimiter //
create procedure rowq.internal_promote_grouped(
    p_part_id int,
    p_owns_transaction boolean,
    inout p_messages longtext,
    out p_joined int
)
sql security definer
modifies sql data
begin
-- routine   internal_promote_grouped
-- purpose   Let due messages join their groups, as internal_lock_due returns them: p_messages are afterwards those for the caller to make ready, p_joined is how many of the others wait in their groups now.
-- promise   P11 P21 P22
-- locks     delayed rows, locked by the caller; as internal_try_enter_group; new grouped rows
-- differs   no such helper elsewhere: part of internal_promote
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_due_at, v_later datetime(6);
    declare v_message_id, v_free_id bigint;
    declare v_lane smallint;
    declare v_group_key varbinary(800);
    declare v_has_token boolean;
    declare v_is_late, v_is_end boolean default false;
    declare v_others longtext;
    declare each_message cursor for
        select j.message_id, j.lane, v_epoch + interval j.due_at microsecond, unhex(j.group_key)
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                due_at bigint path '$[3]',
                group_key varchar(1600) path '$[4]'
            )
        ) j
        where j.group_key is not null
        order by j.place;
    declare continue handler for not found set v_is_end = true;
    set p_joined = 0;

    open each_message;
    messages: loop
        fetch each_message into v_message_id, v_lane, v_due_at, v_group_key;
        if v_is_end then
            leave messages;
        end if;
        -- Wait for a producer once a call, and no longer than a moment.
        set v_has_token = null;
        if not v_is_late then
            call rowq.internal_try_enter_group(
                p_part_id, v_group_key, p_owns_transaction, v_has_token
            );
        end if;
        set v_is_end = false;
        if v_has_token then
            iterate messages;
        end if;

        set v_others = concat_ws(',', v_others, v_message_id);
        if v_has_token is null then
            set v_is_late = true;
            if p_owns_transaction then
                -- A producer that has named the message as a predecessor holds its row, perhaps.
                set v_free_id = null;
                select m.message_id into v_free_id
                from rowq.message m force index (primary)
                where m.message_id = v_message_id
                for update skip locked;
                set v_is_end = false;
                if v_free_id is not null then
                    set v_later = utc_timestamp(6) + interval 500000 microsecond;
                    update rowq.delayed d force index (primary)
                    set d.due_at = v_later
                    where d.part_id = p_part_id
                      and d.due_at = v_due_at
                      and d.message_id = v_message_id;
                    update rowq.message m force index (primary)
                    set m.due_at = v_later
                    where m.message_id = v_message_id;
                end if;
            end if;
        else
            delete from rowq.delayed
            where part_id = p_part_id
              and due_at = v_due_at
              and message_id = v_message_id;
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, v_message_id, v_lane);
            set p_joined = p_joined + 1;
        end if;
    end loop;
    close each_message;

    if v_others is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.due_at)) into p_messages
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                due_at bigint path '$[3]'
            )
        ) j
        left join (
            select distinct o.message_id
            from json_table(
                concat('[', v_others, ']'), '$[*]' columns (message_id bigint path '$')
            ) o
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;
end//
delimiter ;
