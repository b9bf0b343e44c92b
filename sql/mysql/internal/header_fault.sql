drop procedure if exists rowq.internal_header_fault;

delimiter //
create procedure rowq.internal_header_fault(
    p_headers longtext,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_header_fault
-- purpose   Return what is wrong with headers; null means nothing.
-- promise   P15
    -- This finds a number of more than 100 digits, or with an exponent above 200.
    declare c_hard varchar(200) default '(?:[0-9.]{102}|[0-9]{101}'
        '|[0-9.]++[eE][-+]?0*+(?:20[1-9]|2[1-9][0-9]|[3-9][0-9][0-9]|[1-9][0-9]{3}))';
    -- MySQL raises 3157 for JSON that is nested more than 100 deep.
    declare exit handler for 3157
        set p_fault = 'headers must be a JSON object, nested at most 20 deep';

    -- For MariaDB, JSON that is nested more than 31 deep is not valid, so the first text names the
    -- depth too.
    set p_fault = case
        when not json_valid(p_headers)
            then 'headers must be a JSON object, nested at most 20 deep'
        when json_type(p_headers) <> 'OBJECT'
            then 'headers must be a JSON object'
        when char_length(p_headers) > 65536
            then 'headers are longer than 65536 characters'
        when json_depth(p_headers) > 20
            then 'headers are nested more than 20 deep'
        -- The first pattern seldom finds anything. Where it does, the second one looks again and
        -- passes over the strings in the headers.
        when p_headers regexp c_hard
            and p_headers regexp concat(
                '^(?:[^"0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!', c_hard, ')[0-9.eE+-]++)*+', c_hard
            )
            then 'headers have a number of too many digits'
    end;
end//
delimiter ;
