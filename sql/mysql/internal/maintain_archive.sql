drop procedure if exists rowq.internal_maintain_archive;

delimiter //
create procedure rowq.internal_maintain_archive(
    p_part_id int,
    p_limit int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_archive
-- purpose   Run the archive part of maintain: move, purge whole days, drop partitions; an error in it is a warning.
-- promise   P09 P19
-- locks     a row of lane, passed over when locked; as archive and purge_archive
-- commits   its own transaction where the caller has none, and implicitly; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_archive_days int;
    declare v_lane smallint;
    declare v_kept, v_finished bigint;

    attempt: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                set p_archived = 0, p_purged = 0;
                -- After a deadlock (1213, 1020) the caller's transaction is gone, so the caller
                -- must get the error. So must a caller whose call was killed (1317) or ran out of
                -- its time (1969, 3024).
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                -- An error in the archive, such as a full disk, is only a warning, because
                -- promoting and reaping must go on.
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq archive: ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            set p_archived = 0, p_purged = 0, p_partitions_dropped = 0, p_is_done = false;
            set v_archive_days = 0, v_lane = null, v_kept = null, v_finished = null;

            call rowq.internal_begin_work(v_owns_transaction);
            select q.archive_days into v_archive_days
            from rowq.queue q
            where q.part_id = p_part_id;
            call rowq.internal_first_key(p_part_id, -3 /* finished */, 0, v_finished);
            if v_archive_days = 0 then
                -- A queue without an archive may have rows from a time when it had one, so look for
                -- them.
                select a.message_id into v_kept
                from rowq.archive a
                where a.part_id = p_part_id
                limit 1;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);

            if v_archive_days > 0 or v_kept is not null or v_finished is not null then
                if v_owns_transaction then
                    call rowq.internal_open_days(p_part_id, p_limit);
                end if;
                call rowq.internal_begin_work(v_owns_transaction);
                -- The archive part has an election of its own, so that the other parts go on while
                -- days are moved and dropped.
                select l.lane into v_lane
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = -3 /* finished */
                for update skip locked;
                if v_lane is not null then
                    call rowq.internal_archive(
                        p_part_id, p_limit, v_owns_transaction, p_archived
                    );
                    -- Purge whole days, because dropping a partition costs less than deleting its
                    -- rows. A queue that keeps no archive any more is purged up to now.
                    call rowq.internal_purge_archive(
                        p_part_id,
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
