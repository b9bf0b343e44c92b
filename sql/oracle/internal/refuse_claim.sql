procedure internal_refuse_claim(p_claim_id in number)
is
-- routine   internal_refuse_claim
-- version   1
-- purpose   The error for a claim that is gone.
-- promise   P08
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ721
-- differs   nothing
begin
    raise_application_error(
        -20721,
        'RQ721 stale_claim: claim ' || internal_number_text(p_claim_id)
        || ' holds nothing any more'
    );
end internal_refuse_claim;
