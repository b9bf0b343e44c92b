drop procedure if exists rowq.internal_note_start;

delimiter //
create procedure rowq.internal_note_start(
    p_part_id int,
    p_claim_id bigint,
    p_last_claim_id bigint,
    p_started_at datetime(6),
    p_messages int,
    p_rate_limit int
)
sql security definer
modifies sql data
begin
-- routine   internal_note_start
-- purpose   Note a claim that was made under the queue's limits, and where there is a rate_limit the deliveries that it has begun.
-- promise   P28 P29
-- locks     the gate, locked by the caller; the new started row
    update rowq.gate g
    set g.last_claim_id = p_claim_id
    where g.part_id = p_part_id;

    if p_claim_id < p_last_claim_id then
        -- The numbers of claims begin again lower, as they may on another server. Count from the
        -- first one on until maintain has found where the claims begin now.
        call rowq.internal_move_floor(p_part_id, -9 /* counted claim */, 0, 0);
    end if;

    if p_rate_limit > 0 then
        insert into rowq.started (part_id, started_at, claim_id, messages)
        values (p_part_id, p_started_at, p_claim_id, p_messages);
    end if;
end//
delimiter ;
