drop procedure if exists rowq.internal_read_result;

delimiter //
create procedure rowq.internal_read_result(
    p_part_id int,
    p_message_id bigint,
    out p_state varchar(20),
    out p_finished_at datetime(6),
    out p_result longtext,
    out p_last_error varchar(2000)
)
sql security definer
reads sql data
begin
-- routine   internal_read_result
-- purpose   Return how a message has ended, and its result; of one that has not ended its state; nulls when rowq does not know it.
-- promise   P32
-- differs   no such helper elsewhere: part of get_result
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_worker_name varchar(200);
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare v_place varchar(20);
    set p_state = null, p_finished_at = null, p_result = null, p_last_error = null;

    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = p_part_id;
    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            p_part_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_place, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
    end if;

    if v_place in ('ready', 'delayed', 'blocked', 'leased') then
        set p_state = v_place;
    else
        -- Look for the result last, because it is committed together with the end that was seen.
        select r.state, r.finished_at, r.result, r.last_error
        into p_state, p_finished_at, p_result, p_last_error
        from rowq.result r force index (primary)
        where r.part_id = p_part_id
          and r.message_id = p_message_id
          and r.message_id > 0;
        if p_state is null and v_place is not null then
            set p_state = v_place, p_finished_at = v_finished_at;
            select d.last_error into p_last_error
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and d.message_id = p_message_id;
        elseif p_state is null then
            select a.state, a.finished_at into p_state, p_finished_at
            from rowq.archive a force index (archive_message_ix)
            where a.part_id = p_part_id
              and a.message_id = p_message_id;
        end if;
    end if;
end//
delimiter ;
