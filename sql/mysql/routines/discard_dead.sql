drop procedure if exists rowq.discard_dead;

delimiter //
create procedure rowq.discard_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6)
)
sql security definer
modifies sql data
comment 'Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.'
begin
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     the part, shared; dead rows, passing over locked ones; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_limit int default if(p_message_ids is null, coalesce(p_max_messages, 1000), 10000);
    declare v_seen, v_dead, v_tokenless longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_ids(p_message_ids);
            call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);
            if p_message_ids is not null
               and (p_message_type is not null or p_died_before is not null) then
                call rowq.internal_refuse(
                    'message_type and died_before go together with no message_ids'
                );
            end if;

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);

            -- Find rows without locks, then lock them by their whole keys, so that no gap is
            -- locked.
            if p_message_ids is null then
                select json_arrayagg(h.message_id) into v_seen
                from (
                    select d.message_id
                    from rowq.dead d force index (primary)
                    where d.part_id = v_part_id
                      and (p_died_before is null or d.died_at < p_died_before)
                      and (p_message_type is null or cast(p_message_type as binary) = (
                          select cast(m.message_type as binary)
                          from rowq.message m force index (primary)
                          where m.message_id = d.message_id
                      ))
                    order by d.part_id, d.message_id
                    limit 10000
                ) h;
            else
                select json_arrayagg(h.message_id) into v_seen
                from (
                    select distinct d.message_id
                    from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
                    straight_join rowq.dead d force index (primary)
                        on d.part_id = v_part_id
                       and d.message_id = a.message_id
                ) h;
            end if;
            select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)),
                   json_arrayagg(if(h.holds_group, null, h.message_id))
            into v_dead, v_tokenless
            from (
                select d.message_id, d.lane, d.attempt, d.holds_group
                from (
                    select distinct a.message_id
                    from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) a
                    order by a.message_id
                ) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = v_part_id
                   and d.message_id = j.message_id
                limit v_limit
                for update skip locked
            ) h;
            if v_dead is not null then
                delete d
                from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = v_part_id
                   and d.message_id = j.message_id;
                call rowq.internal_finish(
                    v_part_id, 0, true, v_dead, v_tokenless, v_owns_transaction, 'cancelled'
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select coalesce(json_length(v_dead), 0) as removed;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;
