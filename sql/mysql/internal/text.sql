-- Text: JSON, timestamps and lists of ids.
--
-- Results and headers must be JSON that every parser accepts: no number of more than 100 digits, no
-- deep nesting. Times are UTC with microseconds. Texts of times are ISO 8601, regardless of the
-- session's settings.
--
--   enqueue_batch, publish_batch, retry_later, ... -> check_text
--   next_slice, archive -> cut_slice
--   message_error, check_schedule, check_results -> json_error -> find_outside_strings
--   check_results -> json_length
--   parse_message -> parse_timestamp
--
-- No table.

drop procedure if exists rowq.internal_check_text;

delimiter //
create procedure rowq.internal_check_text(p_name longtext, p_text longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a text with an unpaired surrogate; call it only for a text with a byte ED.
-- errors    RQ711
-- differs   elsewhere the engine refuses it
    -- MariaDB accepts an unpaired surrogate (ED A0 80 to ED BF BF) as a UTF-8 character. Converting
    -- to UTF-16 and back makes it a question mark, so the texts differ.
    if convert(convert(p_text using utf16) using utf8mb4) <> p_text then
        call rowq.internal_refuse(concat(p_name, ' contains an unpaired surrogate'));
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_cut_slice;

delimiter //
create procedure rowq.internal_cut_slice(
    inout p_messages longtext,
    p_most int,
    out p_slice longtext
)
sql security definer
reads sql data
begin
-- purpose   Move the first p_most messages of an array to p_slice; leave the others or null.
    declare v_all longtext default p_messages;

    set p_slice = p_messages, p_messages = null;
    if json_length(v_all) > p_most then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_slice
        from json_table(
            v_all,
            '$[*]' columns (
                position for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.position <= p_most;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                position for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.position > p_most;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_json_error;

delimiter //
create procedure rowq.internal_json_error(
    p_name varchar(20),
    p_value longtext,
    p_kind varchar(20),
    p_deepest int,
    p_max_length int,
    out p_error varchar(120)
)
sql security definer
modifies sql data
begin
-- purpose   Return the error in headers or results, or null.
--
-- p_kind is the type that they must have, p_deepest the depth of their level 20.
    -- Matches a number of more than 100 digits, or with an exponent above 200.
    declare c_hard varchar(200) default '(?:[0-9.]{102}|[0-9]{101}'
        '|[0-9.]++[eE][-+]?0*+(?:20[1-9]|2[1-9][0-9]|[3-9][0-9][0-9]|[1-9][0-9]{3}))';
    declare c_short int default 65536;
    declare v_found boolean;
    -- MySQL raises 3157 for JSON nested more than 100 deep, MariaDB 4040 for more than 31.
    declare exit handler for 3157, 4040
        set p_error = concat(p_name, ' must be a JSON ', lower(p_kind), ' nested at most 20 deep');

    -- To MariaDB, JSON nested more than 31 deep is not valid, so the first text names the depth.
    set p_error = case
        when not json_valid(p_value)
            then concat(p_name, ' must be a JSON ', lower(p_kind), ' nested at most 20 deep')
        when json_type(p_value) <> p_kind
            then concat(p_name, ' must be a JSON ', lower(p_kind))
        when char_length(p_value) > p_max_length
            then concat(p_name, ' must be at most ', p_max_length, ' characters')
        when json_depth(p_value) > p_deepest
            then concat(p_name, ' must be nested at most 20 deep')
        -- If the first pattern matches, the second one checks again outside strings.
        when char_length(p_value) <= c_short
            and p_value regexp c_hard
            and p_value regexp concat(
                '^(?:[^"0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!', c_hard, ')[0-9.eE+-]++)*+', c_hard
            )
            then concat(p_name, ' must not contain numbers with more than 100 digits')
    end;
    if p_error is null and char_length(p_value) > c_short then
        call rowq.internal_find_outside_strings(
            p_value, concat('(?<![0-9.])', c_hard), v_found
        );
        if v_found then
            set p_error = concat(p_name, ' must not contain numbers with more than 100 digits');
        end if;
    end if;
end//
delimiter ;

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
-- purpose   Find a pattern outside the strings of long JSON; a match has at most 210 characters.
-- differs   only here: in a long text MySQL aborts a regular expression (3699)
    declare c_inside varchar(40) default '"(?:[^"\\\\]++|\\\\.)*+';
    declare c_before varchar(80) default concat('^(?:[^"]++|', c_inside, '")*+');
    declare c_size int default 10000;
    -- Work on bytes: finding the nth character means counting all before it. No byte of a multibyte
    -- character is in the patterns.
    declare v_bytes longblob default cast(p_value as binary);
    declare v_at bigint default 1;
    declare v_piece, v_rest longtext;
    declare v_kept longtext default '';
    set p_found = false;

    while not p_found and v_at <= length(v_bytes) do
        set v_piece = concat(v_kept, convert(substring(v_bytes, v_at, c_size) using latin1)),
            v_at = v_at + c_size;
        -- A string that does not end here continues in the next piece, possibly amid an escape.
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

drop procedure if exists rowq.internal_json_length;

delimiter //
create procedure rowq.internal_json_length(p_value longtext, out p_length bigint)
sql security definer
modifies sql data
begin
-- purpose   Return the length of a JSON value, counting an escape such as \u0041 as 1 character.
-- differs   only here: MariaDB stores JSON as it was written
    declare c_size int default 10000;
    declare v_bytes longblob default cast(p_value as binary);
    declare v_at bigint default 1;
    declare v_piece varbinary(10001);
    set p_length = char_length(p_value);
    -- Replace takes quadratic time in a long text, so work in pieces. A piece includes one byte of
    -- the next, so that an escape that begins in it is complete.
    while v_at <= length(v_bytes) do
        set v_piece = substring(v_bytes, v_at, c_size + 1), v_at = v_at + c_size;
        set p_length = p_length
            - (length(v_piece) - length(replace(v_piece, x'5C75', ''))) div 2 * 5;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_parse_timestamp;

delimiter //
create procedure rowq.internal_parse_timestamp(p_text longtext, out p_timestamp datetime(6))
sql security definer
no sql
begin
-- purpose   Parse an ISO 8601 timestamp, UTC if it has no zone; return null if it is invalid.
    -- The patterns do not depend on default_regex_flags.
    declare v_zone varchar(6) default coalesce(
        regexp_substr(p_text, '(Z|[+-][0-9]{2}:?[0-9]{2})\\z'), ''
    );
    declare v_minutes int default 0;
    set p_timestamp = null;

    if p_text regexp concat(
        '\\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T\\x20][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?',
        '(Z|[+-][0-9]{2}:?[0-9]{2})?\\z'
    ) then
        set p_timestamp = cast(
            replace(left(p_text, char_length(p_text) - char_length(v_zone)), 'T', ' ')
            as datetime(6)
        );
        if char_length(v_zone) > 1 then
            set v_minutes = substr(v_zone, 2, 2) * 60 + right(v_zone, 2);
            set p_timestamp = p_timestamp
                - interval if(left(v_zone, 1) = '-', -v_minutes, v_minutes) minute;
        end if;
    end if;
end//
delimiter ;
