drop procedure if exists rowq.internal_parse_cron_field;

delimiter //
create procedure rowq.internal_parse_cron_field(
    p_field longtext,
    p_name varchar(20),
    p_low int,
    p_high int,
    p_words varchar(60),
    out p_bits varchar(60)
)
sql security definer
modifies sql data
begin
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    declare v_rest varchar(201) default concat(lower(p_field), ',');
    declare v_item, v_range varchar(200);
    declare v_first, v_last varchar(3);
    declare v_value, v_end, v_step int;
    set p_bits = repeat('0', p_high - p_low + 1);

    while v_rest <> '' do
        set v_item = substring_index(v_rest, ',', 1),
            v_rest = substr(v_rest, char_length(v_item) + 2),
            v_value = null, v_end = null, v_step = null;
        if v_item regexp
            '\\A(\\*|([0-9]{1,2}|[a-z]{3})(-([0-9]{1,2}|[a-z]{3}))?)(/[0-9]{1,2})?\\z'
        then
            set v_range = substring_index(v_item, '/', 1),
                v_step = if(locate('/', v_item) > 0, substring_index(v_item, '/', -1), 1);
            if v_range = '*' then
                set v_value = p_low, v_end = p_high;
            else
                set v_first = substring_index(v_range, '-', 1),
                    v_last = substring_index(v_range, '-', -1);
                call rowq.internal_parse_cron_value(v_first, p_low, p_words, v_value);
                call rowq.internal_parse_cron_value(v_last, p_low, p_words, v_end);
                -- A single value with steps goes on to the end.
                if locate('/', v_item) > 0 and locate('-', v_range) = 0 then
                    set v_end = p_high;
                end if;
            end if;
        end if;
        if not coalesce(
            v_value >= p_low and v_end <= p_high and v_value <= v_end and v_step > 0, false
        ) then
            call rowq.internal_refuse(
                concat(
                    'the ', p_name, ' of cron must be *, values from ', p_low, ' to ', p_high,
                    ', ranges or steps of these, got ', left(p_field, 60)
                )
            );
        end if;
        while v_value <= v_end do
            set p_bits = insert(p_bits, v_value - p_low + 1, 1, '1'),
                v_value = v_value + v_step;
        end while;
    end while;
end//
delimiter ;
