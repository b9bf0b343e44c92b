function internal_parse_moment(p_text in varchar2)
return timestamp
is
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
-- promise   P15
    c_shape constant varchar2(200 char) :=
        '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2})?(\.[0-9]{1,6})?'
        || '(Z|[+-][0-9]{2}:?[0-9]{2})?$';
    v_zone    varchar2(10 char);
    v_minutes pls_integer := 0;
    v_moment  timestamp(6);
begin
    if p_text is null or not regexp_like(p_text, c_shape, 'c') then
        return null;
    end if;
    v_moment := to_timestamp(
        regexp_substr(p_text, c_shape, 1, 1, 'c', 1) || ' '
        || regexp_substr(p_text, c_shape, 1, 1, 'c', 2)
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 3), ':00')
        || coalesce(regexp_substr(p_text, c_shape, 1, 1, 'c', 4), '.0'),
        'yyyy-mm-dd hh24:mi:ss.ff6', 'nls_calendar=gregorian'
    );
    v_zone := regexp_substr(p_text, c_shape, 1, 1, 'c', 5);
    if length(v_zone) > 1 then
        v_minutes := to_number(substr(v_zone, 2, 2), '99') * 60
            + to_number(substr(v_zone, -2), '99');
        -- Compare the code of the sign: NLS_COMP and NLS_SORT may make '-' equal to '+'.
        if ascii(v_zone) = 45 then
            v_minutes := -v_minutes;
        end if;
    end if;
    return v_moment - numtodsinterval(v_minutes, 'minute');
exception
    when others then
        -- A date such as the thirtieth of February raises one of a dozen errors (ORA-018xx): it is
        -- no moment.
        if sqlcode between -1899 and -1800 then
            return null;
        end if;
        raise;
end internal_parse_moment;
