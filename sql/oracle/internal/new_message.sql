function internal_new_message(
    p_now                 in timestamp,
    p_place               in number,
    p_body                in clob,
    p_body_binary         in blob,
    p_message_type        in varchar2,
    p_headers             in clob,
    p_priority            in number,
    p_delay_seconds       in number,
    p_run_at              in timestamp,
    p_dedup_key           in varchar2,
    p_max_attempts        in number,
    p_group_key           in varchar2,
    p_predecessor_ids     in rowq_ids,
    p_on_predecessor_dead in varchar2,
    p_expire_seconds      in number
)
return t_new_message
is
-- routine   internal_new_message
-- purpose   Return a message as it will be stored, from arguments that are already checked.
-- promise   P05 P11
-- differs   no such helper elsewhere: part of store
    v_new t_new_message;
begin
    v_new.body := p_body;
    v_new.body_binary := p_body_binary;
    v_new.message_type := p_message_type;
    v_new.headers := p_headers;
    v_new.lane := p_priority * 2 + 1;
    v_new.seq := internal_microseconds(p_now) + p_place;
    v_new.enqueued_at := p_now + numtodsinterval(p_place / 1000000, 'second');
    v_new.due_at := coalesce(p_run_at, p_now + numtodsinterval(p_delay_seconds, 'second'));
    if v_new.due_at <= p_now then
        v_new.due_at := null;
    end if;
    v_new.expires_at := v_new.enqueued_at + numtodsinterval(p_expire_seconds, 'second');
    v_new.dedup_key := p_dedup_key;
    v_new.max_attempts := p_max_attempts;
    v_new.group_key := p_group_key;
    v_new.place := p_place;
    v_new.predecessor_ids := p_predecessor_ids;
    v_new.on_predecessor_dead := p_on_predecessor_dead;
    return v_new;
end internal_new_message;
