drop procedure if exists rowq.internal_refuse_claim;

delimiter //
create procedure rowq.internal_refuse_claim(p_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_claim
-- purpose   Raise the error for a claim that is gone.
-- promise   P08
-- errors    RQ721
    declare v_text varchar(128);
    set v_text = concat('RQ721 stale_claim: claim ', p_claim_id, ' holds nothing any more');
    signal sqlstate '45721' set message_text = v_text;
end//
delimiter ;
