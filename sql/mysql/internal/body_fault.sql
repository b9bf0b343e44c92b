drop procedure if exists rowq.internal_body_fault;

delimiter //
create procedure rowq.internal_body_fault(
    p_body longtext,
    p_body_binary longblob,
    p_headers longtext,
    p_max_body_length int,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_length bigint default coalesce(char_length(p_body), length(p_body_binary));
    declare v_limit bigint default cast(@@global.max_allowed_packet as signed) - 20000;

    -- Count as internal_messages_json does. 20000 bytes are enough for everything beside body and
    -- headers, and for an error that is noted later.
    set p_fault = case
        when v_length > p_max_body_length
            then concat(
                'body is ', v_length, ' long, and the queue takes ', p_max_body_length,
                ': max_body_length'
            )
        when coalesce(length(json_quote(p_body)), length(p_body) * 6, v_length * 1.352, 0)
            + coalesce(length(json_extract(p_headers, '$')), 0) > v_limit
            then concat('as JSON it is longer than max_allowed_packet less 20000, ', v_limit)
    end;
end//
delimiter ;
