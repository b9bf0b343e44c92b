drop procedure if exists rowq.maintain;

delimiter //
create procedure rowq.maintain(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Run the maintenance of one queue or all; call it about once a second.'
begin
-- routine   maintain
-- version   1
-- purpose   Run the maintenance of one queue or all; call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37 P49
-- locks     rows of lane, tried, while a queue is maintained; as promote, reap and archive
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name maintains 1000 at random; an error in
--           one queue is kept for health; in an open transaction the archive keeps its partitions,
--           and nothing expires
    declare v_owns_transaction boolean;
    declare v_all, v_busy, v_idle, v_failed, v_rows longtext default '[]';
    declare v_queue_id, v_promoted, v_reaped, v_died, v_archived, v_purged, v_dropped,
        v_expired int;
    declare v_elected boolean;
    declare v_at int default 0;
    declare v_until datetime(6);
    declare exit handler for sqlexception
    begin
        call rowq.internal_restore_session();
        resignal;
    end;

    call rowq.internal_set_session(@@timestamp);
    -- More than one batch of results and history runs only until then, for all queues: delivery
    -- waits for the next call.
    set v_until = utc_timestamp(6) + interval 100000 microsecond;
    call rowq.internal_check_batch_size(p_batch_size);
    call rowq.internal_begin_work(v_owns_transaction);
    if p_queue_name is null then
        select json_arrayagg(h.queue_id) into v_busy
        from (
            select q.queue_id
            from rowq.queue q
            order by rand()
            limit 1000
        ) h;
    else
        set v_queue_id = null;
        select q.queue_id into v_queue_id
        from rowq.queue q
        where q.queue_name = cast(p_queue_name as binary);
        set v_busy = json_array(v_queue_id);
    end if;
    select json_arrayagg(cast(substring(m.name, 16) as signed)) into v_failed
    from rowq.meta m
    where m.name like 'maintain!_fault.%' escape '!';
    call rowq.internal_commit_work(v_owns_transaction);
    if p_queue_name is not null and v_queue_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- One statement finds the idle queues, so that many of them cost little.
    set v_all = coalesce(v_busy, '[]');
    call rowq.internal_idle_queues(v_all, v_idle, v_busy);
    select json_arrayagg(json_array(j.queue_id, j.is_elected, 0, 0, 0, 0, 0, 0, 0)) into v_rows
    from json_table(
        v_idle, '$[*]' columns (queue_id int path '$[0]', is_elected tinyint path '$[1]')
    ) j;
    set v_rows = coalesce(v_rows, '[]');

    while v_at < coalesce(json_length(v_busy), 0) do
        begin
            declare v_errno int;
            declare v_text varchar(512);
            -- A dropped queue is an error only if the caller named it.
            declare exit handler for sqlstate '45701'
            begin
                if p_queue_name is not null then
                    resignal;
                end if;
            end;
            -- A failed queue does not stop the others. Raise errors that ended the caller's
            -- transaction (1213, 1020, 1205) or the call: killed (1317), timed out (1969, 3024).
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                if p_queue_name is not null
                   or v_errno in (1317, 1969, 3024)
                   or not v_owns_transaction
                   and (v_errno in (1213, 1020) or v_errno = 1205 and @@innodb_rollback_on_timeout)
                then
                    resignal;
                end if;
                if @rowq_pinned is null then
                    call rowq.internal_set_session(@@timestamp);
                end if;
                call rowq.internal_record_maintain_error(
                    v_queue_id, left(concat(v_errno, ' ', v_text), 500)
                );
                set v_rows = json_array_append(
                    v_rows, '$', json_array(v_queue_id, 1, 0, 0, 0, 0, 0, 0, 0)
                );
            end;
            set v_queue_id = json_unquote(json_extract(v_busy, concat('$[', v_at, ']'))),
                v_at = v_at + 1;
            call rowq.internal_maintain_queue(
                v_queue_id, coalesce(p_batch_size, 1000), v_until, v_elected, v_promoted, v_reaped,
                v_died, v_archived, v_purged, v_dropped, v_expired
            );
            if v_elected and json_contains(v_failed, concat(v_queue_id)) then
                call rowq.internal_record_maintain_error(v_queue_id, null);
            end if;
            set v_rows = json_array_append(
                v_rows, '$',
                json_array(
                    v_queue_id, v_elected, v_promoted, v_reaped, v_died, v_archived, v_purged,
                    v_dropped, v_expired
                )
            );
        end;
    end while;

    select convert(q.queue_name using utf8mb4) as queue_name, j.elected, j.promoted, j.reaped,
           j.died, j.archived, j.purged, j.partitions_dropped, j.expired
    from json_table(
        v_rows,
        '$[*]' columns (
            queue_id int path '$[0]',
            elected tinyint path '$[1]',
            promoted int path '$[2]',
            reaped int path '$[3]',
            died int path '$[4]',
            archived int path '$[5]',
            purged int path '$[6]',
            partitions_dropped int path '$[7]',
            expired int path '$[8]'
        )
    ) j
    straight_join rowq.queue q on q.queue_id = j.queue_id;

    call rowq.internal_restore_session();
end//
delimiter ;
