function internal_expire(p_queue in t_queue, p_limit in number)
return number
is
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were.
-- promise   P13 P36
-- locks     expiry rows; as internal_pop_expired; then as complete
-- differs   under each isolation level: a statement shows one moment, and a row whose message is in
--           no place at that moment is of no use from then on, however old it is
    c_steps     constant pls_integer := 10;
    c_long_walk constant number := 20000;
    v_started constant timestamp(6) := sys_extract_utc(systimestamp);
    v_now   timestamp(6) := v_started;
    v_since timestamp(6) :=
        internal_from_microseconds(internal_read_floor(p_queue.part_id, -6 /* expiry */));
    v_found    t_expiring_list;
    v_due      t_expiring_list;
    v_later    t_expiring_list;
    v_messages t_messages;
    v_ended    t_places;
    v_put_off  t_places;
    v_text     varchar2(40 char);
    v_gone     t_expiring_list;
    v_kept     t_expiring_list;
    v_took     number;
    v_seen     pls_integer := 0;
    v_expired  pls_integer := 0;
    -- One statement looks for the message in all places, so that none is missed on its way from one
    -- to another.
    cursor due_rows is
        select /*+ leading(e m) use_nl(m) index_rs_asc(e rowq_expiry_pk) index(m rowq_message_pk) */
               e.expires_at, e.expiry_id, e.message_id, e.lane, e.seq, m.due_at, m.group_key,
               least(m.expires_at, v_now + numtodsinterval(1, 'day')) as later_at,
               case
                   when m.message_id is null then null
                   when exists (
                       select /*+ no_unnest index(r rowq_ready_pk) */ null
                       from rowq_ready r
                       where r.part_id = e.part_id
                         and r.lane = e.lane
                         and r.seq = e.seq
                         and r.message_id = e.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'ready' end
                   when exists (
                       select /*+ no_unnest index(d rowq_delayed_pk) */ null
                       from rowq_delayed d
                       where d.part_id = m.part_id
                         and d.due_at = m.due_at
                         and d.message_id = m.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'delayed' end
                   when exists (
                       select /*+ no_unnest index(b rowq_blocked_pk) */ null
                       from rowq_blocked b
                       where b.part_id = e.part_id
                         and b.message_id = e.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'blocked' end
                   when exists (
                       select /*+ no_unnest index(g rowq_grouped_pk) */ null
                       from rowq_grouped g
                       where g.part_id = m.part_id
                         and g.group_key = hextoraw(rawtohex(m.group_key))
                         and g.message_id = m.message_id
                   ) then case when m.expires_at > v_now then 'later' else 'grouped' end
               end as place
        from rowq_expiry e
        left join rowq_message m
          on m.part_id = e.part_id
         and m.message_id = e.message_id
        where e.part_id = p_queue.part_id
          and e.expires_at >= v_since
          and e.expires_at <= v_now
        order by e.part_id, e.expires_at, e.expiry_id;
begin
    open due_rows;
    while v_seen < c_steps * p_limit and v_expired < p_limit loop
        fetch due_rows bulk collect into v_found limit p_limit;
        exit when v_found.count = 0;
        v_seen := v_seen + v_found.count;
        v_due.delete;
        v_later.delete;
        v_put_off.delete;
        for i in 1 .. v_found.count loop
            v_text := internal_number_text(v_found(i).message_id);
            if v_found(i).place = 'later' and not v_put_off.exists(v_text) then
                v_put_off(v_text) := i;
                v_later(v_later.count + 1) := v_found(i);
            else
                v_due(v_due.count + 1) := v_found(i);
                -- One row of a message that expires later is enough.
                if v_found(i).place = 'later' then
                    v_due(v_due.count).place := null;
                end if;
            end if;
        end loop;
        forall i in 1 .. v_later.count
            update rowq_expiry e
            set e.expires_at = v_later(i).later_at
            where e.part_id = p_queue.part_id
              and e.expires_at = v_later(i).expires_at
              and e.expiry_id = v_later(i).expiry_id;
        internal_pop_expired(p_queue.part_id, v_due, v_messages);
        internal_finish(p_queue, v_messages, 'expired');
        v_expired := v_expired + v_messages.count;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again.
        v_ended.delete;
        v_gone.delete;
        for i in 1 .. v_messages.count loop
            v_ended(internal_number_text(v_messages(i).message_id)) := i;
        end loop;
        for i in 1 .. v_due.count loop
            if v_due(i).place is null
               or v_ended.exists(internal_number_text(v_due(i).message_id)) then
                v_gone(v_gone.count + 1) := v_due(i);
            else
                v_kept(v_kept.count + 1) := v_due(i);
            end if;
        end loop;
        forall i in 1 .. v_gone.count
            delete from rowq_expiry e
            where e.part_id = p_queue.part_id
              and e.expires_at = v_gone(i).expires_at
              and e.expiry_id = v_gone(i).expiry_id;
        -- Look anew, because what the end of a message has let go on has a row of a later moment.
        if v_messages.count > 0 and v_found.count = p_limit then
            close due_rows;
            v_since := v_found(v_found.count).expires_at;
            v_now := sys_extract_utc(systimestamp);
            open due_rows;
        end if;
    end loop;
    close due_rows;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    v_took := internal_microseconds(sys_extract_utc(systimestamp))
        - internal_microseconds(v_started);
    if v_seen >= c_steps * p_limit or v_took > c_long_walk then
        forall i in 1 .. v_kept.count
            update rowq_expiry e
            set e.expires_at = v_now
            where e.part_id = p_queue.part_id
              and e.expires_at = v_kept(i).expires_at
              and e.expiry_id = v_kept(i).expiry_id;
    end if;
    return v_expired;
end internal_expire;
