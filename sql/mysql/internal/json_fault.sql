drop procedure if exists rowq.internal_json_fault;

delimiter //
create procedure rowq.internal_json_fault(
    p_name varchar(20),
    p_value longtext,
    p_kind varchar(20),
    p_deepest int,
    p_max_length int,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_deepest how deep 20 levels are, from the outside; null means nothing.
-- promise   P15
    -- This finds a number of more than 100 digits, or with an exponent above 200.
    declare c_hard varchar(200) default '(?:[0-9.]{102}|[0-9]{101}'
        '|[0-9.]++[eE][-+]?0*+(?:20[1-9]|2[1-9][0-9]|[3-9][0-9][0-9]|[1-9][0-9]{3}))';
    declare c_short int default 65536;
    declare v_found boolean;
    -- MySQL raises 3157 for JSON that is nested more than 100 deep, MariaDB 4040 for more than 31.
    declare exit handler for 3157, 4040
        set p_fault = concat(
            p_name, ' must be a JSON ', lower(p_kind), ', nested at most 20 deep'
        );

    -- For MariaDB, JSON that is nested more than 31 deep is not valid, so the first text names the
    -- depth too.
    set p_fault = case
        when not json_valid(p_value)
            then concat(p_name, ' must be a JSON ', lower(p_kind), ', nested at most 20 deep')
        when json_type(p_value) <> p_kind
            then concat(p_name, ' must be a JSON ', lower(p_kind))
        when char_length(p_value) > p_max_length
            then concat(p_name, ' are longer than ', p_max_length, ' characters')
        when json_depth(p_value) > p_deepest
            then concat(p_name, ' are nested more than 20 deep')
        -- The first pattern seldom finds anything. Where it does, the second one looks again and
        -- passes over the strings in the value.
        when char_length(p_value) <= c_short
            and p_value regexp c_hard
            and p_value regexp concat(
                '^(?:[^"0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!', c_hard, ')[0-9.eE+-]++)*+', c_hard
            )
            then concat(p_name, ' have a number of too many digits')
    end;
    if p_fault is null and char_length(p_value) > c_short then
        call rowq.internal_find_outside_strings(
            p_value, concat('(?<![0-9.])', c_hard), v_found
        );
        if v_found then
            set p_fault = concat(p_name, ' have a number of too many digits');
        end if;
    end if;
end//
delimiter ;
