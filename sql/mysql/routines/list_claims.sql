drop procedure if exists rowq.list_claims;

delimiter //
create procedure rowq.list_claims(p_queue_name longtext, p_after_claim_id bigint, p_max_claims int)
sql security definer
modifies sql data
comment 'List the claims of one queue or all, by id.'
begin
-- routine   list_claims
-- version   1
-- purpose   List the claims of one queue or all, by id.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim committed late is listed once maintain has corrected its floor
    declare v_limit int default coalesce(p_max_claims, 100);
    declare v_queue_id, v_last int default 0;
    declare v_after bigint;
    declare v_more longtext;
    declare v_claims longtext default '[]';
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    call rowq.internal_check_range('max_claims', v_limit, 1, 10000);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_last);
        set v_last = v_last - 1;
    end if;

    queues: loop
        set v_queue_id = null;
        select q.queue_id into v_queue_id
        from rowq.queue q force index (primary)
        where q.queue_id > v_last
          and (p_queue_name is null or q.queue_id = v_last + 1)
        order by q.queue_id
        limit 1;
        if v_queue_id is null then
            leave queues;
        end if;
        set v_last = v_queue_id;

        select greatest(l.floor - 1, coalesce(p_after_claim_id, 0), 0) into v_after
        from rowq.lane l force index (primary)
        where l.queue_id = v_queue_id
          and l.lane = -1 /* claim */;
        select json_arrayagg(json_array(v_queue_id, h.claim_id)) into v_more
        from (
            select c.claim_id, c.lease_until
            from rowq.claim c force index (primary)
            where c.queue_id = v_queue_id
              and c.claim_id > v_after
            order by c.queue_id, c.claim_id
            limit v_limit
        ) h;
        set v_claims = json_merge_preserve(v_claims, coalesce(v_more, '[]'));
        if json_length(v_claims) > v_limit then
            -- Keep one page, so that the list does not grow with the number of queues.
            select json_arrayagg(json_array(h.queue_id, h.claim_id)) into v_claims
            from (
                select j.queue_id, j.claim_id
                from json_table(
                    v_claims,
                    '$[*]' columns (queue_id int path '$[0]', claim_id bigint path '$[1]')
                ) j
                order by j.claim_id
                limit v_limit
            ) h;
        end if;
        if p_queue_name is not null then
            leave queues;
        end if;
    end loop;

    select convert(q.queue_name using utf8mb4) as queue_name, c.claim_id, c.worker_name,
           coalesce(json_length(c.messages), c.last_id - c.first_id + 1) as message_count,
           c.lease_until,
           timestampdiff(microsecond, utc_timestamp(6), c.lease_until) / 1e6 as lease_left_seconds
    from json_table(
        v_claims, '$[*]' columns (queue_id int path '$[0]', claim_id bigint path '$[1]')
    ) j
    straight_join rowq.claim c force index (primary)
        on c.queue_id = j.queue_id
       and c.claim_id = j.claim_id
    straight_join rowq.queue q force index (primary) on q.queue_id = j.queue_id
    order by j.claim_id;

    call rowq.internal_restore_session();
end//
delimiter ;
