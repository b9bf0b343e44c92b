drop procedure if exists rowq.internal_note_expiry;

delimiter //
create procedure rowq.internal_note_expiry(p_part_id int, p_messages longtext, p_seq bigint)
sql security definer
modifies sql data
begin
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire: [message_id, lane]. In ready, their places are those in the array behind p_seq; it is null where they wait elsewhere.
-- promise   P36
-- locks     new expiry rows
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_notes longtext;

    -- Read first, because an insert with a select would lock what it reads under the caller's
    -- repeatable read. maintain finds out about a message that an old snapshot does not show.
    select json_arrayagg(
               json_array(
                   j.message_id, if(p_seq is null, null, j.lane), p_seq + j.place,
                   timestampdiff(
                       microsecond, '1970-01-01',
                       least(
                           greatest(coalesce(m.expires_at, v_now), v_now), v_now + interval 1 day
                       )
                   )
               )
           )
    into v_notes
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]'
        )
    ) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;

    if v_notes is not null then
        insert into rowq.expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        select p_part_id, v_epoch + interval j.expires_at microsecond,
               uuid_short() & 9007199254740991, j.message_id, j.lane, j.seq
        from json_table(
            v_notes,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                expires_at bigint path '$[3]'
            )
        ) j;
    end if;
end//
delimiter ;
