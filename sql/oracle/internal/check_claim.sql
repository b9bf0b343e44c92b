procedure internal_check_claim(p_claim_id in number)
is
-- routine   internal_check_claim
-- purpose   Refuse a claim_id that is missing.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: part of the routines
begin
    if p_claim_id is null then
        internal_refuse('claim_id is missing');
    end if;
end internal_check_claim;
