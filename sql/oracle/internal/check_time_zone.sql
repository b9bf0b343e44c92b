procedure internal_check_time_zone(p_time_zone in varchar2)
is
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
    v_local timestamp(6);
begin
    begin
        -- A name begins with a letter, which an offset does not, and has no blank, behind which
        -- stands an abbreviation, such as CEST.
        if length(p_time_zone) <= 64
           and ascii(lower(p_time_zone)) between ascii('a') and ascii('z')
           and instr(p_time_zone, chr(32)) = 0 then
            v_local := internal_local_of(sys_extract_utc(systimestamp), p_time_zone);
        end if;
    exception
        when others then
            -- ORA-01882 is the error for an unknown name. A strange one may raise another of its
            -- kind (ORA-018xx).
            if sqlcode not between -1899 and -1800 then
                raise;
            end if;
    end;
    if v_local is null then
        internal_refuse(
            'time_zone must be a name such as Europe/Berlin that the server knows, got '
            || coalesce(substr(p_time_zone, 1, 100), 'null')
        );
    end if;
end internal_check_time_zone;
