-- Archive: finished messages, by day.
--
-- A finished message of a queue with archive_days waits in finished until maintain moves it to
-- archive with its body. Messages locked by another transaction are skipped. A day is a partition
-- if the server has them: maintain adds days early and drops those that no queue needs. A
-- queue's old rows in other days are deleted by key. An error never fails maintain; the next call
-- retries.
--
--   maintain_queue -> maintain_archive -> open_days, archive, purge_archive, drop_days
--   open_days -> open_day
--   open_day -> shape_archive
--   maintain_queue -> sweep_again
--
-- Writes archive, finished, lane. Only reads queue.

drop procedure if exists rowq.internal_maintain_archive;

delimiter //
create procedure rowq.internal_maintain_archive(
    p_queue_id int,
    p_limit int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- purpose   Archive, purge and drop days in maintain; log an error as a warning.
-- locks     a row of lane, skipped if locked; as archive and purge_archive
-- commits   its own transaction if the caller has none, and implicitly; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_archive_days int;
    declare v_lane smallint;
    declare v_archived_id, v_finished bigint;

    attempt: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                set p_archived = 0, p_purged = 0;
                -- Raise an error that ended the caller's transaction (1213, 1020) or the call:
                -- killed (1317), timed out (1969, 3024).
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                -- An error in the archive, such as a full disk, is only logged: promote and reap
                -- continue.
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq archive: ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            set p_archived = 0, p_purged = 0, p_partitions_dropped = 0, p_is_done = false;
            set v_archive_days = 0, v_lane = null, v_archived_id = null, v_finished = null;

            call rowq.internal_begin_work(v_owns_transaction);
            select q.archive_days into v_archive_days
            from rowq.queue q
            where q.queue_id = p_queue_id;
            call rowq.internal_first_key(p_queue_id, -3 /* finished */, 0, v_finished);
            if v_archive_days = 0 then
                -- The queue may have rows from when it had an archive.
                select a.message_id into v_archived_id
                from rowq.archive a
                where a.queue_id = p_queue_id
                limit 1;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);

            if v_archive_days > 0 or v_archived_id is not null or v_finished is not null then
                if v_owns_transaction then
                    call rowq.internal_open_days(p_queue_id, p_limit);
                end if;
                call rowq.internal_begin_work(v_owns_transaction);
                -- This election is separate, so that the rest of maintain runs while days are moved
                -- and dropped.
                select l.lane into v_lane
                from rowq.lane l force index (primary)
                where l.queue_id = p_queue_id
                  and l.lane = -3 /* finished */
                for update skip locked;
                if v_lane is not null then
                    call rowq.internal_archive(
                        p_queue_id, p_limit, v_owns_transaction, p_archived
                    );
                    -- Purge whole days: dropping a partition costs less than deleting its rows. A
                    -- queue without archive_days is purged up to now.
                    call rowq.internal_purge_archive(
                        p_queue_id,
                        if(
                            v_archive_days > 0,
                            date(utc_timestamp(6) - interval v_archive_days day),
                            utc_timestamp(6)
                        ),
                        p_limit, v_owns_transaction, p_purged
                    );
                end if;
                call rowq.internal_commit_work(v_owns_transaction);
                if v_owns_transaction and v_lane is not null then
                    call rowq.internal_drop_days(p_partitions_dropped);
                end if;
                set p_is_done = v_lane is not null
                    and p_archived < p_limit
                    and p_purged < p_limit;
            else
                set p_is_done = true;
            end if;
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_open_days;

delimiter //
create procedure rowq.internal_open_days(p_queue_id int, p_limit int)
sql security definer
modifies sql data
begin
-- purpose   Add the archive partitions for the next p_limit finished batches.
-- locks     the archive, waits up to 1 s
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL adds the partition in the transaction that needs it
    declare v_days longtext;
    declare v_floor bigint;
    declare v_at int default 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -3 /* finished */;
    select json_arrayagg(h.finished_on) into v_days
    from (
        select distinct date(f.finished_at) as finished_on
        from (
            select x.finished_at
            from rowq.finished x force index (primary)
            where x.queue_id = p_queue_id
              and x.finish_id > 0
              and x.finish_id >= v_floor
            order by x.queue_id, x.finish_id
            limit p_limit
        ) f
    ) h;
    while v_at < coalesce(json_length(v_days), 0) do
        call rowq.internal_open_day(json_unquote(json_extract(v_days, concat('$[', v_at, ']'))));
        set v_at = v_at + 1;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_open_day;

delimiter //
create procedure rowq.internal_open_day(p_day date)
sql security definer
modifies sql data
begin
-- purpose   Add the partition of a day to the archive, unless it exists.
-- locks     the archive, waits up to 1 s
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL adds the partition in the transaction that needs it
    declare v_name varchar(64) default concat('p', date_format(p_day, '%Y%m%d'));
    declare v_end varchar(20) default concat("'", p_day + interval 1 day, "'");
    declare v_covering, v_bound varchar(64);
    declare v_is_done boolean;

    select p.partition_name, p.partition_description into v_covering, v_bound
    from information_schema.partitions p
    where p.table_schema = 'rowq'
      and p.table_name = 'archive'
      and (
          p.partition_description = 'MAXVALUE'
          or left(p.partition_description, 11) >= left(v_end, 11)
      )
    order by p.partition_ordinal_position
    limit 1;
    if v_covering <> v_name then
        -- Split the day off the partition that covers it. Rows of the day move with it.
        call rowq.internal_shape_archive(
            concat(
                'alter table rowq.archive reorganize partition ', v_covering, ' into (partition ',
                v_name, ' values less than (', v_end, '), partition ', v_covering,
                ' values less than (', v_bound, '))'
            ),
            v_is_done
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_shape_archive;

delimiter //
create procedure rowq.internal_shape_archive(p_statement longtext, out p_is_done boolean)
sql security definer
modifies sql data
begin
-- purpose   Add or drop a partition of the archive, if no session reads it for a second.
-- locks     the archive, waits up to 1 s
-- commits   implicitly, as DDL does; call it outside transactions
-- differs   only engines where DDL commits need it
    declare v_timeout bigint default @@session.lock_wait_timeout;
    -- The statement fails if another session reads the archive or has made the same change: the
    -- next call retries.
    declare continue handler for sqlexception set p_is_done = false;
    -- Raise the error if the call was killed (1317) or timed out (1969, 3024).
    declare exit handler for 1317, 1969, 3024
    begin
        set session lock_wait_timeout = v_timeout;
        set @rowq_statement = null;
        resignal;
    end;
    set p_is_done = true;

    -- A prepared statement takes its text only from a session variable. On MariaDB, ignore the
    -- caller's alter_algorithm.
    set @rowq_statement = concat(
        if(version() like '%MariaDB%', 'set statement alter_algorithm = default for ', ''),
        p_statement
    );
    set session lock_wait_timeout = 1;
    prepare rowq_shape from @rowq_statement;
    if p_is_done then
        execute rowq_shape;
        deallocate prepare rowq_shape;
    end if;
    set session lock_wait_timeout = v_timeout;
    set @rowq_statement = null;
end//
delimiter ;

drop procedure if exists rowq.internal_archive;

delimiter //
create procedure rowq.internal_archive(
    p_queue_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_archived int
)
sql security definer
modifies sql data
begin
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- locks     finished rows, skipping locked ones; message rows, tried; new archive rows; as
--           internal_release_links
    declare v_after, v_finish_id bigint;
    declare v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_messages, v_remaining, v_free longtext;
    declare v_existing int;
    set p_archived = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -3 /* finished */;

    batches: while p_archived < p_limit do
        -- Read the row without locks, then lock it by its full key, so that no gap is locked.
        set v_finish_id = null;
        select f.finish_id, f.state into v_finish_id, v_state
        from rowq.finished f force index (primary)
        where f.queue_id = p_queue_id
          and f.finish_id > v_after
        order by f.queue_id, f.finish_id
        limit 1;
        if v_finish_id is null then
            leave batches;
        end if;
        set v_after = v_finish_id, v_messages = null;
        select f.messages, f.finished_at, f.state into v_messages, v_finished_at, v_state
        from rowq.finished f force index (primary)
        where f.queue_id = p_queue_id
          and f.finish_id = v_finish_id
        for update skip locked;
        if v_messages is null then
            iterate batches;
        end if;

        set v_remaining = v_messages;
        call rowq.internal_cut_slice(v_remaining, p_limit - p_archived, v_messages);

        -- Skip a batch while a producer adds a successor of one of its messages.
        select json_arrayagg(json_array(h.message_id, null, null, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        if coalesce(json_length(v_free), 0) < json_length(v_messages) then
            select count(*) into v_existing
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
            if v_existing > coalesce(json_length(v_free), 0) then
                iterate batches;
            end if;
        end if;

        insert into rowq.archive (
            queue_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key, producer_name
        )
        select p_queue_id, v_finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, v_state,
               m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key,
               m.producer_name
        from json_table(
            v_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete m
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        if v_remaining is null then
            delete f
            from rowq.finished f force index (primary)
            where f.queue_id = p_queue_id
              and f.finish_id = v_finish_id;
        else
            update rowq.finished f force index (primary)
            set f.messages = v_remaining
            where f.queue_id = p_queue_id
              and f.finish_id = v_finish_id;
        end if;
        set p_archived = p_archived + json_length(v_messages);
        -- When the message ended, an uncommitted successor was not visible.
        if json_contains(json_extract(v_free, '$[*][3]'), '1') then
            call rowq.internal_release_links(p_queue_id, v_free, p_owns_transaction);
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_archive;

delimiter //
create procedure rowq.internal_purge_archive(
    p_queue_id int,
    p_before datetime(6),
    p_limit int,
    p_owns_transaction boolean,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- purpose   Delete a queue's archived messages that finished before p_before.
-- locks     archive rows
    declare v_keep_from datetime(6) default '1970-01-01';
    -- Rows that no queue needs go with their partition. In the caller's transaction no partition is
    -- dropped, so delete them.
    if p_owns_transaction then
        select date(utc_timestamp(6) - interval max(q.archive_days) day) into v_keep_from
        from rowq.queue q;
    end if;

    delete from rowq.archive
    where queue_id = p_queue_id
      and finished_at >= v_keep_from
      and finished_at < p_before
    order by queue_id, finished_at, message_id
    limit p_limit;
    set p_purged = row_count();
end//
delimiter ;

drop procedure if exists rowq.internal_drop_days;

delimiter //
create procedure rowq.internal_drop_days(out p_partitions_dropped int)
sql security definer
modifies sql data
begin
-- purpose   Drop the partitions of the archive that no queue needs.
-- locks     the archive, waits up to 1 s
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL drops them in the caller's transaction
    declare v_keep_from varchar(20);
    declare v_name varchar(64);
    declare v_is_done boolean default true;
    set p_partitions_dropped = 0;

    select concat("'", date(utc_timestamp() - interval max(q.archive_days) day)) into v_keep_from
    from rowq.queue q;

    while v_is_done do
        set v_name = null;
        select p.partition_name into v_name
        from information_schema.partitions p
        where p.table_schema = 'rowq'
          and p.table_name = 'archive'
          and p.partition_description <> 'MAXVALUE'
          and left(p.partition_description, 11) <= v_keep_from
        order by p.partition_ordinal_position
        limit 1;
        set v_is_done = v_name is not null;
        if v_is_done then
            call rowq.internal_shape_archive(
                concat('alter table rowq.archive drop partition ', v_name), v_is_done
            );
            set p_partitions_dropped = p_partitions_dropped + v_is_done;
        end if;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_sweep_again;

delimiter //
create procedure rowq.internal_sweep_again(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Keep the next maintain from skipping a queue whose archive has more work.
-- locks     a row of lane, skipped if locked
-- commits   its own transaction if the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane smallint;

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
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.queue_id = p_queue_id
              and l.lane = -1 /* claim */
            for update skip locked;
            if v_lane is not null then
                update rowq.lane l
                set l.sweep_at = '1970-01-01'
                where l.queue_id = p_queue_id
                  and l.lane = -1 /* claim */;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
