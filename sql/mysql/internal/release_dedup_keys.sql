drop procedure if exists rowq.internal_release_dedup_keys;

delimiter //
create procedure rowq.internal_release_dedup_keys(p_part_id int, p_ties longtext)
sql security definer
modifies sql data
begin
-- routine   internal_release_dedup_keys
-- purpose   Free the dedup keys of messages that are finished or dead, as internal_read_ties returns them; leave to maintain those that another transaction has locked.
-- promise   P12
-- locks     dedup rows, tried only; new dedup and recheck rows
-- differs   PostgreSQL waits for nobody here: a producer that is told of a duplicate locks no row
    declare v_free longtext;
    declare v_count, v_keys int;

    select sum(j.dedup_key is not null) into v_keys
    from json_table(p_ties, '$[*]' columns (dedup_key varchar(1600) path '$[2]')) j;
    if v_keys > 0 then
        select json_arrayagg(h.message_id), count(*) into v_free, v_count
        from (
            select k.message_id
            from json_table(
                p_ties,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    dedup_key varchar(1600) path '$[2]'
                )
            ) j
            straight_join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = unhex(j.dedup_key)
               and k.message_id = j.message_id
            limit 1000000
            for update /*!80000 of k */ skip locked
        ) h;
        delete k
        from (
            select distinct x.message_id
            from json_table(v_free, '$[*]' columns (message_id bigint path '$')) x
        ) f
        straight_join json_table(
            p_ties,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[2]')
        ) j on j.message_id = f.message_id
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = unhex(j.dedup_key)
           and k.message_id = j.message_id;
        if v_count < v_keys then
            -- A producer that was told of a duplicate has locked the row, perhaps, and may never
            -- end its transaction.
            insert into rowq.dedup (part_id, dedup_key, message_id)
            select p_part_id, concat(x'FF', unhex(j.dedup_key)), j.message_id
            from json_table(
                p_ties,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    dedup_key varchar(1600) path '$[2]'
                )
            ) j
            left join (
                select distinct x.message_id
                from json_table(v_free, '$[*]' columns (message_id bigint path '$')) x
            ) f on f.message_id = j.message_id
            where j.dedup_key is not null
              and f.message_id is null
            on duplicate key update message_id = values(message_id);
            insert into rowq.recheck (part_id, due_at, recheck_id)
            values (p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991);
        end if;
    end if;
end//
delimiter ;
