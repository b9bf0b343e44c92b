drop procedure if exists rowq.internal_return_ready;

delimiter //
create procedure rowq.internal_return_ready(p_part_id int, p_messages longtext, p_kept int)
sql security definer
modifies sql data
begin
-- routine   internal_return_ready
-- version   1
-- purpose   Put what internal_pop_ready took, but for the first p_kept messages, where it was.
-- promise   P05 P07
-- locks     ready rows that the caller has locked already
-- commits   never; call it in the transaction that took the messages
-- errors    none
-- differs   elsewhere what is left of a batch goes to the front of its priority
    -- No floor has passed these rows meanwhile: none passes a row that is taken and not committed.
    insert into rowq.ready (part_id, lane, seq, message_id, attempt)
    select p_part_id, j.lane, j.seq, j.message_id, j.attempt - 1
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            seq bigint path '$[3]'
        )
    ) j
    where j.place > p_kept;
end//
delimiter ;
