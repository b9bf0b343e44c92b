procedure internal_refuse_claim(p_claim_id in number)
is
-- routine   internal_refuse_claim
-- purpose   Raise the error for a claim that is gone.
-- promise   P08
-- errors    RQ721
begin
    raise_application_error(
        -20721,
        'RQ721 stale_claim: claim ' || internal_number_text(p_claim_id)
        || ' holds nothing any more'
    );
end internal_refuse_claim;
