drop procedure if exists rowq.internal_check_text;

delimiter //
create procedure rowq.internal_check_text(p_name longtext, p_text longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_text
-- purpose   Refuse a text that no client can read; call it only for a text with a byte ED.
-- promise   P15 P20
-- errors    RQ711
-- differs   elsewhere the engine refuses it
    -- MariaDB accepts half of a surrogate pair (ED A0 80 to ED BF BF) as a character of UTF-8. On
    -- the way to UTF-16 and back it becomes a question mark, so that the texts differ.
    if convert(convert(p_text using utf16) using utf8mb4) <> p_text then
        call rowq.internal_refuse(concat(p_name, ' has half of a surrogate pair, no character'));
    end if;
end//
delimiter ;
