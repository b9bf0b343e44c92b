-- History: attempts that have ended.
--
-- If a queue has history_days, each call that ends attempts adds a row per attempt to history in
-- the same transaction, one insert per outcome. maintain and purge_archive delete by key in the
-- order of ended_at, from a floor. There are no partitions: dropping one would lock the table that
-- every finishing call inserts into.
--
--   complete, retry_later, fail_now, ... -> push_history
--   purge_archive, maintain_retention -> purge_history
--
-- Writes history. Only reads lane.

drop procedure if exists rowq.internal_push_history;

delimiter //
create procedure rowq.internal_push_history(
    p_queue_id int,
    p_claim_id bigint,
    p_worker_name varchar(200),
    p_leased_at datetime(6),
    p_messages longtext,
    p_outcome varchar(20),
    p_error longtext,
    p_dead longtext,
    p_cancel_ids longtext
)
sql security definer
modifies sql data
begin
-- purpose   Record ended attempts with one outcome; those in p_dead or p_cancel_ids have that outcome.
-- locks     new history rows
    insert into rowq.history (
        queue_id, ended_at, message_id, attempt, claim_id, worker_name, leased_at, outcome, error
    )
    select p_queue_id, utc_timestamp(6), j.message_id, j.attempt, p_claim_id, p_worker_name,
           p_leased_at,
           case
               when c.message_id is not null then 'cancelled'
               when d.message_id is not null then 'dead'
               else p_outcome
           end,
           if(c.message_id is null, left(p_error, 2000), null)
    from json_table(
        p_messages, '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
    ) j
    left join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) c on c.message_id = j.message_id
    left join (
        select distinct a.message_id
        from json_table(p_dead, '$[*]' columns (message_id bigint path '$[0]')) a
    ) d on d.message_id = j.message_id;
end//
delimiter ;

drop procedure if exists rowq.internal_purge_history;

delimiter //
create procedure rowq.internal_purge_history(
    p_queue_id int,
    p_days int,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- purpose   Delete up to p_limit expired attempts; return how many.
-- locks     a row of lane, skipped if locked, which elects one session; history rows, skipping
--           locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval p_days day;
    declare v_latest bigint default timestampdiff(
        microsecond, v_epoch, least(v_before, v_now - interval 500000 microsecond)
    );
    declare v_floor, v_first bigint;
    declare v_since datetime(6);
    declare v_seen, v_old longtext;
    set p_purged = 0;

    -- Read the current floor: an old snapshot may show purged rows, and locking one would lock its
    -- gap.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.queue_id = p_queue_id
      and l.lane = -8 /* history */
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Read rows without locks, then lock them by their full keys, so that no gap is locked. A
    -- longer list could be cut at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(
                   json_array(
                       h.message_id, timestampdiff(microsecond, '1970-01-01', h.ended_at),
                       h.claim_id
                   )
               )
        into v_seen
        from (
            select k.message_id, k.ended_at, k.claim_id, k.outcome
            from rowq.history k force index (primary)
            where k.queue_id = p_queue_id
              and k.ended_at >= v_since
              and k.ended_at < v_before
            order by k.queue_id, k.ended_at, k.message_id, k.claim_id
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.ended_at, h.claim_id)) into v_old
        from (
            select j.message_id, j.ended_at, j.claim_id
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    ended_at bigint path '$[1]',
                    claim_id bigint path '$[2]'
                )
            ) j
            straight_join rowq.history k force index (primary)
                on k.queue_id = p_queue_id
               and k.ended_at = v_epoch + interval j.ended_at microsecond
               and k.message_id = j.message_id
               and k.claim_id = j.claim_id
            where k.outcome is not null
            for update /*!80000 of k */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete h
        from json_table(
            v_old,
            '$[*]' columns (
                message_id bigint path '$[0]',
                ended_at bigint path '$[1]',
                claim_id bigint path '$[2]'
            )
        ) j
        straight_join rowq.history h force index (primary)
            on h.queue_id = p_queue_id
           and h.ended_at = v_epoch + interval j.ended_at microsecond
           and h.message_id = j.message_id
           and h.claim_id = j.claim_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_queue_id, -8 /* history */, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_queue_id, -8 /* history */, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;
