drop procedure if exists rowq.internal_maintain_archive;

delimiter //
create procedure rowq.internal_maintain_archive(
    p_part_id int,
    p_limit int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_archive
-- version   1
-- purpose   The archive part of maintain: move, purge whole days, drop partitions; a fault in it is a warning.
-- promise   P09 P19
-- locks     a row of lane, passed over when locked; as archive and purge_archive
-- commits   its own transaction where the caller has none, and implicitly; never the caller's
-- errors    none
-- differs   nothing
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
                -- After a deadlock the caller's transaction is gone: the caller must hear of it. So
                -- must who breaks the call off (1317) or has given it a time (1969, 3024).
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                -- A full disk, a lost partition: the archive waits, promoting and reaping do not.
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq archive: ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            set p_archived = 0, p_purged = 0, p_partitions_dropped = 0;
            set v_archive_days = 0, v_lane = null, v_kept = null, v_finished = null;

            call rowq.internal_begin_work(v_owns_transaction);
            select q.archive_days into v_archive_days
            from rowq.queue q
            where q.part_id = p_part_id;
            call rowq.internal_first_key(p_part_id, -3, 0, v_finished);
            if v_archive_days = 0 then
                -- What is left from a time with an archive.
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
                -- Elected apart from the rest, which goes on while days are moved and dropped.
                select l.lane into v_lane
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = -3
                for update skip locked;
                if v_lane is not null then
                    call rowq.internal_archive(p_part_id, p_limit, p_archived);
                    -- Whole days, but for a queue that keeps nothing any more.
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
            end if;
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;
