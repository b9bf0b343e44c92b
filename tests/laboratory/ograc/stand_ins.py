"""What stands on oGRAC for subprograms that are made of things it does not have.

They are test code: what a caller sees of the subprograms they stand for, and no more than the calls
of ograc_calls.py need. The text of the product that they stand for is not executed there.
"""

from tests.laboratory.ograc.source import Routine, parse

# The name of the subprogram, and what it is made of that oGRAC lacks.
CAUSES = {
    "ids": "JSON_ARRAY_T",
    "internal_is_json": "IS JSON",
    "internal_json_fault": "IS JSON",
    "internal_is_id_list": "JSON_ELEMENT_T, JSON_ARRAY_T",
    "internal_parse_messages": "JSON_ELEMENT_T, JSON_ARRAY_T, JSON_OBJECT_T",
    "messages_json": "JSON_ARRAY_T, JSON_OBJECT_T",
    "internal_drop_days": "USER_TAB_PARTITIONS, DBMS_ASSERT",
    "internal_waiters_lock_number": "ALL_TAB_PRIVS, DBMS_UTILITY",
    "internal_random_fraction": "DBMS_UTILITY, SYS_GUID",
}

_TEXTS = (
    """
function internal_random_fraction
return number
is
begin
    return rowq_random();
end internal_random_fraction;
""",
    """
function internal_waiters_lock_number(p_part_id in number)
return number
is
begin
    return p_part_id;
end internal_waiters_lock_number;
""",
    """
function ids(p_ids in rowq_ids)
return clob
is
    v_text varchar2(8000);
begin
    if p_ids is null then
        return null;
    end if;
    for i in 1 .. p_ids.count loop
        v_text := v_text || case when i > 1 then ', ' end || p_ids(i);
    end loop;
    return '[' || v_text || ']';
end ids;
""",
    """
function internal_is_json(p_text in clob)
return boolean
is
begin
    if json_query(p_text, '$') is not null then
        return true;
    end if;
    return false;
exception
    when others then
        return false;
end internal_is_json;
""",
    """
procedure internal_json_fault(
    p_name    in varchar2,
    p_json    in clob,
    p_kind    in varchar2,
    p_deepest in number,
    p_longest in number,
    p_cuts    out nocopy t_numbers,
    p_fault   out varchar2
)
is
begin
    p_fault := null;
    if p_json is null then
        return;
    end if;
    if not internal_is_json(p_json) or substr(ltrim(p_json), 1, 1) <> '{' then
        p_fault := p_name || ' must be a JSON ' || p_kind;
    end if;
end internal_json_fault;
""",
    """
function internal_is_id_list(p_list in clob, p_ids out nocopy rowq_ids)
return boolean
is
    v_text varchar2(8000);
begin
    p_ids := rowq_ids();
    if not internal_is_json(p_list) or substr(ltrim(p_list), 1, 1) <> '[' then
        return false;
    end if;
    for i in 1 .. json_array_length(p_list) loop
        v_text := json_value(p_list, '$[' || (i - 1) || ']');
        if v_text is null or not regexp_like(v_text, '^-?[0-9]+$') then
            return false;
        end if;
        p_ids.extend;
        p_ids(i) := to_number(v_text);
    end loop;
    return true;
end internal_is_id_list;
""",
    """
function internal_parse_messages(p_messages in clob)
return t_new_messages
is
    v_now   timestamp(6) := sys_extract_utc(systimestamp);
    v_new   t_new_messages;
    v_one   t_new_message;
    v_fault varchar2(8000);
    v_at    varchar2(40);
    v_body  clob;
    v_head  clob;
    v_type  varchar2(2000);
    v_key   varchar2(2000);
    v_level number;
    v_delay number;
    v_most  number;
    v_due   timestamp(6);
    v_bytes blob;
    v_group varchar2(2000);
    v_dead  varchar2(2000);
    v_list  clob;
    v_ids   rowq_ids;
    v_spots rowq_ids;
    v_is_ok boolean;
begin
    if not internal_is_json(p_messages) or substr(ltrim(p_messages), 1, 1) <> '[' then
        internal_refuse('messages must be a JSON array of at most 10000 objects');
    end if;
    for i in 1 .. json_array_length(p_messages) loop
        v_at := '$[' || (i - 1) || ']';
        v_body := json_value(p_messages, v_at || '.body');
        v_head := json_query(p_messages, v_at || '.headers');
        v_type := json_value(p_messages, v_at || '.message_type');
        v_key := json_value(p_messages, v_at || '.dedup_key');
        v_level := coalesce(to_number(json_value(p_messages, v_at || '.priority')), 5);
        v_delay := to_number(json_value(p_messages, v_at || '.delay_seconds'));
        v_most := to_number(json_value(p_messages, v_at || '.max_attempts'));
        v_due := internal_parse_moment(json_value(p_messages, v_at || '.run_at'));
        v_group := json_value(p_messages, v_at || '.group_key');
        v_dead := json_value(p_messages, v_at || '.on_predecessor_dead');
        v_ids := null;
        v_spots := null;
        v_list := json_query(p_messages, v_at || '.predecessor_ids');
        if v_list is not null then
            v_is_ok := internal_is_id_list(v_list, v_ids);
        end if;
        v_list := json_query(p_messages, v_at || '.predecessor_positions');
        if v_list is not null then
            v_is_ok := internal_is_id_list(v_list, v_spots);
            if v_ids is null then
                v_ids := rowq_ids();
            end if;
        end if;
        v_fault := internal_message_fault(
            v_body, v_bytes, v_type, v_head, v_level, v_delay, v_due, v_key, v_most, v_group,
            v_dead
        );
        if v_fault is not null then
            internal_refuse(v_fault || ' (message ' || internal_number_text(i) || ')');
        end if;
        v_one := internal_new_message(
            v_now, i, v_body, v_bytes, v_type, v_head, v_level, v_delay, v_due, v_key, v_most,
            v_group, v_ids, v_dead
        );
        v_one.predecessor_positions := v_spots;
        v_new(i) := v_one;
    end loop;
    return v_new;
end internal_parse_messages;
""",
    """
function messages_json(
    p_part_id     in number,
    p_claim_id    in number,
    p_lease_until in timestamp
)
return clob
is
    v_text varchar2(8000);
begin
    if p_claim_id is null then
        return null;
    end if;
    for each_message in (
        select l.message_id, l.attempt, m.body
        from rowq_leased l
        join rowq_message m on m.part_id = l.part_id and m.message_id = l.message_id
        where l.part_id = p_part_id and l.claim_id = p_claim_id
        order by l.place
    ) loop
        v_text := v_text || case when v_text is not null then ',' end
            || '{"message_id":' || each_message.message_id
            || ',"attempt":' || each_message.attempt || '}';
    end loop;
    return '[' || v_text || ']';
end messages_json;
""",
    """
function internal_drop_days
return number
is
begin
    return 0;
end internal_drop_days;
""",
)

STAND_INS: dict[str, Routine] = {one.name: one for one in map(parse, _TEXTS)}
# Called by nothing but what has a stand-in.
UNREACHED = {
    "internal_parse_message": "called by internal_parse_messages only",
    "internal_from_base64": "called by internal_parse_message only",
    "internal_to_base64": "called by messages_json only",
    "internal_begin_work": "its calls are rewritten: a savepoint of another subprogram",
    "internal_roll_back": "its calls are rewritten: a rollback to such a savepoint",
    "internal_cut_headers": "called by internal_parse_messages only",
    "internal_json_limit": "called by internal_json_fault only",
}
MAY_BE_SILENT = {
    "internal/text_length.sql": "called for a body that seems too long only",
    "internal/rest_lane.sql": "called after a slow look at a lane only",
}
"""Files that run in a case that the life need not meet, and when."""
