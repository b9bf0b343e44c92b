procedure extend_lease(
    p_queue_name    in varchar2,
    p_claim_id      in number,
    p_lease_seconds in number default null,
    p_progress      in clob default null,
    p_rows          out sys_refcursor
)
is
-- routine   extend_lease
-- version   1
-- purpose   Extend the lease of a claim to lease_seconds from now; it is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    -- A CLOB counts an emoji as 2 characters, a varchar2 as 1.
    v_progress      clob := substr(internal_clob_part(p_progress, 1, 4000), 1, 2000);
    v_queue         t_queue;
    v_row_id        rowid;
    v_lease_until   rowq_claim.lease_until%type;
    v_has_cancels   rowq_claim.has_cancels%type;
    v_has_savepoint boolean;
    cursor claim_row is
        select c.rowid, c.lease_until, c.has_cancels
        from rowq_claim c
        where c.queue_id = v_queue.queue_id
          and c.claim_id = p_claim_id
        for update;
begin
    internal_begin_work(v_has_savepoint);
    internal_check_claim(p_claim_id);
    internal_check_whole('lease_seconds', p_lease_seconds, 1, 86400);
    v_queue := internal_require_queue(p_queue_name);

    open claim_row;
    fetch claim_row into v_row_id, v_lease_until, v_has_cancels;
    close claim_row;
    if v_row_id is null then
        internal_refuse_claim(p_claim_id);
    end if;
    v_lease_until := greatest(
        v_lease_until,
        sys_extract_utc(systimestamp)
        + numtodsinterval(coalesce(p_lease_seconds, v_queue.lease_seconds), 'second')
    );
    if p_progress is null then
        update rowq_claim c
        set c.lease_until = v_lease_until
        where c.rowid = v_row_id;
    else
        -- An empty text is not null, but Oracle takes '' as null: store an empty CLOB.
        v_progress := coalesce(v_progress, empty_clob());
        update rowq_claim c
        set c.lease_until = v_lease_until,
            c.progress    = v_progress
        where c.rowid = v_row_id;
    end if;

    open p_rows for
        select p_claim_id as claim_id, v_lease_until as lease_until,
               case
                   when v_has_cancels = 1 then (
                       select case
                                  when count(*) > 0
                                      then json_arrayagg(l.message_id returning clob)
                              end
                       from rowq_leased l
                       where l.queue_id = v_queue.queue_id
                         and l.claim_id = p_claim_id
                         and l.is_cancelled = 1
                   )
               end as cancel_ids
        from dual;
exception
    when others then
        internal_roll_back(v_has_savepoint);
        raise;
end extend_lease;
