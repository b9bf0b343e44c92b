procedure internal_push_history(
    p_part_id  in number,
    p_claim    in t_claim,
    p_messages in t_messages,
    p_outcome  in varchar2,
    p_error    in clob
)
is
-- routine   internal_push_history
-- purpose   Keep how attempts of a claim have ended, all in one way.
-- promise   P37
-- locks     new history rows
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    -- A CLOB, because SQL takes no varchar2 of more than 4000 bytes for many rows (ORA-01461).
    v_error clob := substr(internal_clob_part(p_error, 1, 4000), 1, 2000);
begin
    if p_error is not null and v_error is null then
        v_error := empty_clob();
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_history (
            part_id, ended_at, message_id, claim_id, attempt, leased_at, outcome, worker_name,
            error
        )
        values (
            p_part_id, v_now, p_messages(i).message_id, p_claim.claim_id, p_messages(i).attempt,
            p_claim.leased_at, p_outcome, p_claim.worker_name, v_error
        );
end internal_push_history;
