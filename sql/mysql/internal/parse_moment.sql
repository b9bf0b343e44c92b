drop procedure if exists rowq.internal_parse_moment;

delimiter //
create procedure rowq.internal_parse_moment(p_text longtext, out p_moment datetime(6))
sql security definer
no sql
begin
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
-- promise   P15
    -- The patterns mean the same whatever default_regex_flags says.
    declare v_zone varchar(6) default coalesce(
        regexp_substr(p_text, '(Z|[+-][0-9]{2}:?[0-9]{2})\\z'), ''
    );
    declare v_minutes int default 0;
    set p_moment = null;

    if p_text regexp concat(
        '\\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T\\x20][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?',
        '(Z|[+-][0-9]{2}:?[0-9]{2})?\\z'
    ) then
        set p_moment = cast(
            replace(left(p_text, char_length(p_text) - char_length(v_zone)), 'T', ' ')
            as datetime(6)
        );
        if char_length(v_zone) > 1 then
            set v_minutes = substr(v_zone, 2, 2) * 60 + right(v_zone, 2);
            set p_moment = p_moment
                - interval if(left(v_zone, 1) = '-', -v_minutes, v_minutes) minute;
        end if;
    end if;
end//
delimiter ;
