drop procedure if exists rowq.internal_maintain_queue;

delimiter //
create procedure rowq.internal_maintain_queue(
    p_part_id int,
    p_limit int,
    p_until datetime(6),
    out p_elected boolean,
    out p_promoted int,
    out p_reaped int,
    out p_died int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     rows of lane, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    declare v_is_done boolean default true;
    declare v_has_results, v_has_history boolean;
    declare v_now datetime(6);
    declare v_more int;
    set p_archived = 0, p_purged = 0, p_partitions_dropped = 0;

    call rowq.internal_maintain_delivery(
        p_part_id, p_limit, p_elected, p_promoted, p_reaped, p_died, p_expired,
        v_has_results, v_has_history
    );
    if p_elected then
        call rowq.internal_run_schedules(p_part_id);
        call rowq.internal_close_fronts(p_part_id);
        call rowq.internal_maintain_archive(
            p_part_id, p_limit, p_archived, p_purged, p_partitions_dropped, v_is_done
        );
        if not v_is_done then
            call rowq.internal_sweep_again(p_part_id);
        end if;
        if v_has_results then
            -- Results leave history half of the time that is left.
            set v_now = utc_timestamp(6);
            call rowq.internal_maintain_kept(
                p_part_id, 'results', p_limit,
                v_now + interval timestampdiff(microsecond, v_now, p_until) div 2 microsecond,
                v_more
            );
            set p_purged = p_purged + v_more;
        end if;
        if v_has_history then
            call rowq.internal_maintain_kept(p_part_id, 'history', p_limit, p_until, v_more);
            set p_purged = p_purged + v_more;
        end if;
    end if;
end//
delimiter ;
