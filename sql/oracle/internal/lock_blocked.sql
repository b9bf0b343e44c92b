procedure internal_lock_blocked(p_part_id in number, p_message_id in number, p_state out varchar2)
is
-- routine   internal_lock_blocked
-- purpose   Lock the row of a blocked message: locked, again where somebody holds it, or gone.
-- promise   P26
-- locks     a blocked row, passed over when locked
-- differs   no such helper elsewhere: part of internal_unblock
    -- ORA-08177: this transaction is serializable, and another has written to the row since then.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_shown pls_integer;
    v_id    rowq_blocked.message_id%type;
    cursor blocked_row is
        select b.message_id
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id
        for update skip locked;
begin
    begin
        open blocked_row;
        fetch blocked_row into v_id;
        close blocked_row;
    exception
        when e_not_serial then
            v_id := null;
    end;
    -- Look again, in a statement of its own: somebody is cancelling the message, perhaps, or it has
    -- gone on.
    select count(*) into v_shown
    from rowq_blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;
    p_state := case
        when v_shown = 0 then 'gone'
        when v_id is null then 'again'
        else 'locked'
    end;
end internal_lock_blocked;
