drop procedure if exists rowq.internal_wait;

delimiter //
create procedure rowq.internal_wait(
    p_part_id int,
    p_until datetime(6),
    inout p_pause double
)
sql security definer
modifies sql data
begin
-- routine   internal_wait
-- purpose   Let a waiter of dequeue_wait sleep until its next look, p_until at the latest.
-- promise   P17
-- locks     a row of lane while it sleeps, passed over when locked
-- commits   each statement by itself; call it outside transactions
-- differs   elsewhere waiters are woken, or a lock of the session elects one
    declare v_look_at datetime(6) default least(p_until, utc_timestamp(6) + interval 1 second);
    declare v_left double;
    declare v_slept, v_interrupted int;

    -- One waiter of a queue looks at it ten times a second: the one that found the row of lane -20
    -- free and holds it while it sleeps. The others try that row four times a second, and look at
    -- the queue once a second.
    naps: while v_slept is null and utc_timestamp(6) < v_look_at do
        set v_left = timestampdiff(microsecond, utc_timestamp(6), v_look_at) / 1000000;
        -- The lock lasts as long as this statement, and ends with a session that is killed. Without
        -- "limit 1" the engine would read the row first, give up its lock and only then sleep.
        select sleep(least(p_pause, v_left)) into v_slept
        from (
            select l.lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -20 /* waiters */
            limit 1
            for update skip locked
        ) h;
        if v_slept is null then
            set v_interrupted = sleep(least(0.25, v_left));
        else
            set v_interrupted = v_slept, p_pause = least(p_pause * 2, 0.1);
        end if;
        if v_interrupted then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end while;
end//
delimiter ;
