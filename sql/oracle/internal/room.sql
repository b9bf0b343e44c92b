function internal_room(p_part_id in number, p_wanted in number)
return number
is
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment; none while it is paused.
-- promise   P28 P29
    v_now  constant timestamp(6) := sys_extract_utc(systimestamp);
    v_room number := 0;
    -- Count from the first row and not from a floor, because a claim that was committed late
    -- counts, too.
    cursor room_row is
        select least(
                   p_wanted,
                   case
                       when q.max_leased > 0 then q.max_leased - (
                           select /*+ index_rs_asc(l rowq_leased_pk) */ count(*)
                           from rowq_leased l
                           where l.part_id = p_part_id
                       )
                       else p_wanted
                   end,
                   case
                       when q.rate_limit > 0 then q.rate_limit - (
                           select /*+ index_rs_asc(s rowq_started_pk) */
                                  coalesce(sum(s.messages), 0)
                           from rowq_started s
                           where s.part_id = p_part_id
                             and s.started_at
                                 > v_now - numtodsinterval(q.rate_seconds, 'second')
                       )
                       else p_wanted
                   end
               ) as messages
        from rowq_queue q
        where q.part_id = p_part_id
          and q.paused_at is null;
begin
    open room_row;
    fetch room_row into v_room;
    close room_row;
    return greatest(v_room, 0);
end internal_room;
