create or replace function rowq.internal_topic_fault(
    p_name       text,
    p_topic      text,
    p_is_pattern boolean
)
returns text
language plpgsql
as $$
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
begin
    return case
        when p_topic is null
            then p_name || ' is missing'
        when char_length(p_topic) > 200
            then p_name || ' is longer than 200 characters'
        when p_is_pattern
             and p_topic collate "C" !~ '^(([A-Za-z0-9_-]+|[*])[.])*([A-Za-z0-9_-]+|[*#])$'
            then p_name || ' must be words of letters, digits, _, - or *, with dots between, # last'
        when not p_is_pattern
             and p_topic collate "C" !~ '^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$'
            then p_name || ' must be words of letters, digits, _, -, with dots between'
    end;
end;
$$;
