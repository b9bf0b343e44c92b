drop procedure if exists rowq.internal_parse_cron_value;

delimiter //
create procedure rowq.internal_parse_cron_value(
    p_word varchar(3),
    p_low int,
    p_words varchar(60),
    out p_value int
)
sql security definer
no sql
begin
-- routine   internal_parse_cron_value
-- purpose   Return the value of a number or a name in a field of a cron expression; -1 for a name that is none.
-- differs   elsewhere a query of internal_parse_cron_field reads both ends of a range
    if p_word regexp '\\A[0-9]' then
        set p_value = p_word;
    elseif locate(p_word, p_words) mod 4 = 1 then
        set p_value = p_low + locate(p_word, p_words) div 4;
    else
        set p_value = -1;
    end if;
end//
delimiter ;
