drop procedure if exists rowq.internal_push_history;

delimiter //
create procedure rowq.internal_push_history(
    p_part_id int,
    p_claim_id bigint,
    p_worker_name varchar(200),
    p_leased_at datetime(6),
    p_messages longtext,
    p_outcome varchar(20),
    p_error longtext,
    p_dead longtext,
    p_cancel_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_push_history
-- purpose   Keep how an attempt of each of these messages has ended: as p_outcome, or dead or cancelled if it is in one of these lists.
-- promise   P37
-- locks     new history rows
    insert into rowq.history (
        part_id, ended_at, message_id, attempt, claim_id, worker_name, leased_at, outcome, error
    )
    select p_part_id, utc_timestamp(6), j.message_id, j.attempt, p_claim_id, p_worker_name,
           p_leased_at,
           case
               when c.message_id is not null then 'cancelled'
               when d.message_id is not null then 'dead'
               else p_outcome
           end,
           if(c.message_id is null, left(p_error, 2000), null)
    from json_table(
        p_messages, '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
    ) j
    left join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) c on c.message_id = j.message_id
    left join (
        select distinct a.message_id
        from json_table(p_dead, '$[*]' columns (message_id bigint path '$[0]')) a
    ) d on d.message_id = j.message_id;
end//
delimiter ;
