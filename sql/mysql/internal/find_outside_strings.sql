drop procedure if exists rowq.internal_find_outside_strings;

delimiter //
create procedure rowq.internal_find_outside_strings(
    p_value longtext,
    p_pattern varchar(200),
    out p_found boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_find_outside_strings
-- purpose   Look in long JSON, but not in its strings, for a pattern that a number in 210 characters matches.
-- differs   no such helper elsewhere: MySQL gives up a regular expression in a long text (3699)
    declare c_inside varchar(40) default '"(?:[^"\\\\]++|\\\\.)*+';
    declare c_before varchar(80) default concat('^(?:[^"]++|', c_inside, '")*+');
    declare c_size int default 10000;
    -- Only bytes are found without counting all characters before them, and no byte of a longer
    -- character is one of those that the patterns name.
    declare v_bytes longblob default cast(p_value as binary);
    declare v_at bigint default 1;
    declare v_piece, v_rest longtext;
    declare v_kept longtext default '';
    set p_found = false;

    while not p_found and v_at <= length(v_bytes) do
        set v_piece = concat(v_kept, convert(substring(v_bytes, v_at, c_size) using latin1)),
            v_at = v_at + c_size;
        -- A string that does not end here goes on in the next piece, perhaps after half an escape.
        set v_rest = case
            when v_piece regexp concat(c_before, c_inside, '\\\\$') then '"\\'
            when v_piece regexp concat(c_before, '"') then '"'
            else ''
        end;
        set v_piece = regexp_replace(v_piece, concat(c_inside, '(?:"|\\\\?$)'), ' ');
        set p_found = v_piece regexp p_pattern,
            v_kept = concat(right(v_piece, 210), v_rest);
    end while;
end//
delimiter ;
