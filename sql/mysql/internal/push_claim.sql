drop procedure if exists rowq.internal_push_claim;

delimiter //
create procedure rowq.internal_push_claim(
    p_part_id int,
    p_leased_at datetime(6),
    p_lease_until datetime(6),
    p_worker_name varchar(200),
    p_messages longtext,
    out p_claim_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_push_claim
-- purpose   Note a batch that was taken as a claim: as a range of ids where they follow each other, else as a list.
-- promise   P02 P03
-- locks     the new claim row
    declare v_is_keyed, v_is_range boolean;
    declare v_lane, v_attempt smallint;
    declare v_first_id, v_last_id bigint;

    select max(j.is_keyed), min(j.lane), min(j.attempt), min(j.message_id), max(j.message_id),
           min(j.message_id - j.place) = max(j.message_id - j.place)
           and min(j.lane) = max(j.lane)
           and min(j.attempt) = max(j.attempt)
    into v_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_is_range
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            is_keyed tinyint path '$[4]'
        )
    ) j;

    set p_claim_id = uuid_short() & 9007199254740991;
    if v_is_range then
        insert into rowq.claim (
            part_id, claim_id, leased_at, lease_until, worker_name, is_keyed, lane, attempt,
            first_id, last_id
        )
        values (
            p_part_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed, v_lane,
            v_attempt, v_first_id, v_last_id
        );
    else
        insert into rowq.claim (
            part_id, claim_id, leased_at, lease_until, worker_name, is_keyed, messages
        )
        values (
            p_part_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed, p_messages
        );
    end if;
end//
delimiter ;
