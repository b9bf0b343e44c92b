drop procedure if exists rowq.internal_look_for_idle;

delimiter //
create procedure rowq.internal_look_for_idle(p_parts longtext, out p_idle longtext)
sql security definer
reads sql data
begin
-- routine   internal_look_for_idle
-- purpose   Return those of the parts in which maintain would find nothing to do.
-- promise   P13 P14
    -- Times are in microseconds. A look into a part that takes longer has walked over dead rows, so
    -- that a floor must move.
    declare c_short_walk bigint default 300;
    declare c_short_look bigint default 2000 + 100 * json_length(p_parts);
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_looks longtext;

    -- sysdate tells the time at which it is evaluated, unlike utc_timestamp. Each subquery
    -- stops at the first row that is no fence row; there is none where it returns null.
    select json_arrayagg(
               json_array(
                   p.part_id,
                   sysdate(6),
                   l.sweep_at between v_now and v_now + interval 5 minute
                   and (
                       select r.attempt
                       from rowq.ready r force index (primary)
                       where r.part_id = l.part_id
                         and r.message_id > 0
                       limit 1
                   ) is null
                   and (
                       select c.messages is null
                       from rowq.claim c force index (primary)
                       where c.part_id = l.part_id
                         and c.claim_id > 0
                       limit 1
                   ) is null
                   and (
                       select f.messages is null
                       from rowq.finished f force index (primary)
                       where f.part_id = l.part_id
                         and f.finish_id > 0
                       limit 1
                   ) is null
                   and coalesce((
                       select d.due_at > v_now or d.attempt is null
                       from rowq.delayed d force index (primary)
                       where d.part_id = l.part_id
                         and d.message_id > 0
                       order by d.part_id, d.due_at, d.message_id
                       limit 1
                   ), true)
                   and coalesce((
                       select r.due_at > v_now or r.is_hint is null
                       from rowq.recheck r force index (primary)
                       where r.part_id = l.part_id
                         and r.recheck_id > 0
                       order by r.part_id, r.due_at, r.recheck_id
                       limit 1
                   ), true)
                   and coalesce((
                       select e.expires_at > v_now or e.message_id is null
                       from rowq.expiry e force index (primary)
                       where e.part_id = l.part_id
                         and e.expiry_id > 0
                       order by e.part_id, e.expires_at, e.expiry_id
                       limit 1
                   ), true)
                   and (
                       select s.missed
                       from rowq.schedule s force index (primary)
                       where s.part_id = l.part_id
                         and s.next_run_at <= v_now
                       limit 1
                   ) is null
                   and (
                       not q.has_started
                       or coalesce((
                           select s.started_at > v_now - interval round(
                                      if(q.rate_limit > 0, q.rate_seconds, 0) * 1000000
                                  ) microsecond
                           from rowq.started s force index (primary)
                           where s.part_id = l.part_id
                             and s.claim_id > 0
                           order by s.part_id, s.started_at, s.claim_id
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_results
                       or coalesce((
                           select k.finished_at > v_now - interval round(
                                      q.result_seconds * 1000000
                                  ) microsecond
                                  or k.state is null
                           from rowq.result k force index (result_finished_ix)
                           where k.part_id = l.part_id
                             and k.message_id > 0
                           order by k.part_id, k.finished_at
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_history
                       or coalesce((
                           select h.ended_at >= v_now - interval q.history_days day
                                  or h.outcome is null
                           from rowq.history h force index (primary)
                           where h.part_id = l.part_id
                             and h.message_id > 0
                           order by h.part_id, h.ended_at, h.message_id, h.claim_id
                           limit 1
                       ), true)
                   ),
                   sysdate(6)
               )
           )
    into v_looks
    from json_table(p_parts, '$[*]' columns (part_id int path '$')) p
    left join rowq.lane l force index (primary)
        on l.part_id = p.part_id
       and l.lane = -1 /* claim */
    left join rowq.queue q force index (primary) on q.part_id = p.part_id;

    -- Where the server makes sysdate a constant, only the time of the whole look is known.
    if timestampdiff(microsecond, v_now, utc_timestamp(6)) > c_short_look then
        set v_looks = null;
    end if;

    select json_arrayagg(j.part_id) into p_idle
    from json_table(
        v_looks,
        '$[*]' columns (
            part_id int path '$[0]',
            began datetime(6) path '$[1]',
            is_idle boolean path '$[2]',
            ended datetime(6) path '$[3]'
        )
    ) j
    where j.is_idle is true
      and timestampdiff(microsecond, j.began, j.ended) between 0 and c_short_walk;
end//
delimiter ;
