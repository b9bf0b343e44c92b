drop procedure if exists rowq.internal_outcomes;

delimiter //
create procedure rowq.internal_outcomes(
    p_message_ids longtext,
    p_messages longtext,
    p_outcome varchar(20),
    p_cancel_ids longtext
)
sql security definer
reads sql data
begin
-- routine   internal_outcomes
-- purpose   Return the result of a finishing routine: one row for each message; those in p_cancel_ids ended as cancelled.
-- promise   P08
-- differs   no such helper elsewhere: other engines return a query
    if p_cancel_ids is not null then
        if p_message_ids is null then
            select json_arrayagg(j.message_id) into p_message_ids
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j;
        end if;
        select a.message_id,
               case
                   when c.message_id is not null then 'cancelled'
                   when h.message_id is not null then p_outcome
                   else 'stale'
               end as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
        ) c on c.message_id = a.message_id
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    elseif p_message_ids is null then
        select j.message_id, p_outcome as outcome
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        order by j.place;
    elseif json_length(p_message_ids) = json_length(p_messages) then
        -- The claim held all of them, so none is stale.
        select a.message_id, p_outcome as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        order by a.place;
    else
        select a.message_id,
               if(h.message_id is not null, p_outcome, 'stale') as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    end if;
end//
delimiter ;
