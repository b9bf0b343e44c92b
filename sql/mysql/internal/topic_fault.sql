drop procedure if exists rowq.internal_topic_fault;

delimiter //
create procedure rowq.internal_topic_fault(
    p_name longtext,
    p_topic longtext,
    p_is_pattern boolean,
    out p_fault varchar(120)
)
sql security definer
no sql
begin
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
    -- Without the count of bytes, letters of other alphabets would pass whose small letters are
    -- ours, where default_regex_flags asks to ignore case.
    set p_fault = case
        when p_topic is null
            then concat(p_name, ' is missing')
        when char_length(p_topic) > 200
            then concat(p_name, ' is longer than 200 characters')
        when p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A(([A-Za-z0-9_\\-]+|[*])[.])*([A-Za-z0-9_\\-]+|[*#])\\z'
             )
            then concat(
                p_name, ' must be words of letters, digits, _, - or *, dots between, # last'
            )
        when not p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*\\z'
             )
            then concat(p_name, ' must be words of letters, digits, _, -, with dots between')
    end;
end//
delimiter ;
