procedure internal_refuse_not_empty(p_part_id in number, p_queue_name in varchar2)
is
-- routine   internal_refuse_not_empty
-- version   1
-- purpose   The error for a queue that still has messages or an archive.
-- promise   P15
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ704
-- differs   nothing elsewhere: part of drop_queue
    v_id number;
    cursor kept is
        select m.message_id
        from rowq_message m
        where m.part_id = p_part_id
        union all
        select a.message_id
        from rowq_archive a
        where a.part_id = p_part_id;
begin
    open kept;
    fetch kept into v_id;
    close kept;
    if v_id is not null then
        raise_application_error(
            -20704,
            'RQ704 queue_not_empty: ' || p_queue_name
            || ' has messages or an archive; force drops them too'
        );
    end if;
end internal_refuse_not_empty;
