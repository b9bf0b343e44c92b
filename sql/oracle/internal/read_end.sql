function internal_read_end(p_part_id in number, p_message_id in number)
return varchar2
is
-- routine   internal_read_end
-- purpose   Return whether a message that still has a body is finished or dead; null where it is neither.
-- promise   P25 P27
-- differs   no such helper elsewhere: part of internal_await_predecessor
    v_state varchar2(20 char);
    cursor ends is
        select 'dead' as state
        from rowq_dead d
        where d.part_id = p_part_id
          and d.message_id = p_message_id
        union all
        select /*+ index_rs_asc(f rowq_finished_pk) */ 'finished' as state
        from rowq_finished f
        where f.part_id = p_part_id
          and f.finish_id >= (
              select l.floor_seq
              from rowq_lane l
              where l.part_id = p_part_id
                and l.lane = -3 /* finished */
          )
          and f.message_id = p_message_id;
begin
    open ends;
    fetch ends into v_state;
    close ends;
    return v_state;
end internal_read_end;
