function internal_lock_gate(p_part_id in number)
return boolean
is
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue; return whether that was done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
-- errors    RQ713
-- differs   the row is written, so that a serializable transaction that is older is refused
    -- ORA-08177: this transaction is serializable, and the gate was taken after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_most_tries constant pls_integer := 10;
    v_tries pls_integer := 0;
    v_held  rowq_gate.part_id%type;
    cursor gate_row is
        select g.part_id
        from rowq_gate g
        where g.part_id = p_part_id
        for update skip locked;
begin
    loop
        open gate_row;
        fetch gate_row into v_held;
        close gate_row;
        exit when v_held is not null or v_tries = c_most_tries;
        v_tries := v_tries + 1;
        dbms_session.sleep(0.01);
    end loop;
    if v_held is null then
        return false;
    end if;
    update rowq_gate g
    set g.taken_at = sys_extract_utc(systimestamp)
    where g.part_id = p_part_id;
    return true;
exception
    when e_not_serial then
        raise_application_error(
            -20713,
            'RQ713 wrong_transaction_state: a queue with max_leased or rate_limit delivers under'
            || ' read committed only'
        );
end internal_lock_gate;
