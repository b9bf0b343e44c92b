drop procedure if exists rowq.internal_is_id_list;

delimiter //
create procedure rowq.internal_is_id_list(p_message_ids longtext, out p_is_good boolean)
sql security definer
modifies sql data
begin
-- routine   internal_is_id_list
-- purpose   Return whether a text is a JSON array of ids, not too long and without null; a null text passes.
-- promise   P15
    declare v_count, v_good int;
    if p_message_ids is not null then
        if json_valid(p_message_ids) and json_type(p_message_ids) = 'ARRAY' then
            set v_count = json_length(p_message_ids);
            if v_count <= 10000
               and p_message_ids regexp '\\A\\[[\\-0-9,\\x20]*\\]\\z'
               and not p_message_ids regexp '[0-9]{20}' then
                -- Most lists have nothing but short numbers, so that this pattern is enough. The
                -- patterns mean the same whatever default_regex_flags says.
                set v_good = v_count;
            elseif v_count <= 10000 then
                select count(*) into v_good
                from json_table(
                    p_message_ids, '$[*]' columns (id varchar(40) path '$')
                ) a
                where a.id regexp '\\A-?[0-9]{1,19}\\z';
            end if;
        end if;
    end if;
    set p_is_good = p_message_ids is null or coalesce(v_good = v_count, false);
end//
delimiter ;
