procedure internal_refuse_unknown(
    p_message_id in number,
    p_place      in number,
    p_newest_id  in number
)
is
-- routine   internal_refuse_unknown
-- purpose   Refuse a message whose newest predecessor has an id that was not given out yet.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of block
    v_given pls_integer;
begin
    -- An id that another instance has given out may be above the message's own. Those that the
    -- server keeps at hand count as given out: last_number is behind them.
    if p_newest_id < p_message_id then
        return;
    end if;
    select count(*) into v_given
    from user_sequences s
    where s.sequence_name = 'ROWQ_MESSAGE_SEQ'
      and s.last_number > p_newest_id;
    if v_given = 0 then
        internal_refuse(
            'predecessor_ids must name messages that are there'
            || case when p_place > 0 then ' (message ' || internal_number_text(p_place) || ')' end
        );
    end if;
end internal_refuse_unknown;
