drop procedure if exists rowq.internal_idle_parts;

delimiter //
create procedure rowq.internal_idle_parts(
    p_parts longtext,
    out p_idle longtext,
    out p_busy longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_idle_parts
-- purpose   Divide parts into those in which maintain would find nothing to do, with whether this session is elected for each, and the others.
-- promise   P13 P14 P19
-- locks     rows of lane, passed over when locked, for this call only
-- commits   its own transaction where the caller has none; never the caller's
    -- A look into a part that takes longer, in microseconds, has walked over dead rows, so that a
    -- floor must move.
    declare c_short_walk bigint default 300;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_now datetime(6);
    declare v_looks, v_parts, v_free longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_now = utc_timestamp(6), p_idle = null, p_busy = p_parts;

            -- In the caller's transaction an election lasts to its end, so go into each part there.
            if v_owns_transaction then
                -- sysdate tells the time at which it is evaluated, unlike utc_timestamp. Each subquery
                -- stops at the first row that is no fence row; there is none where it returns null.
                select json_arrayagg(
                           json_array(
                               p.part_id,
                               sysdate(6),
                               l.sweep_at between v_now and v_now + interval 5 minute
                               and (
                                   select r.attempt
                                   from rowq.ready r force index (primary)
                                   where r.part_id = l.part_id
                                     and r.message_id > 0
                                   limit 1
                               ) is null
                               and (
                                   select c.messages is null
                                   from rowq.claim c force index (primary)
                                   where c.part_id = l.part_id
                                     and c.claim_id > 0
                                   limit 1
                               ) is null
                               and (
                                   select f.messages is null
                                   from rowq.finished f force index (primary)
                                   where f.part_id = l.part_id
                                     and f.finish_id > 0
                                   limit 1
                               ) is null
                               and coalesce((
                                   select d.due_at > v_now or d.attempt is null
                                   from rowq.delayed d force index (primary)
                                   where d.part_id = l.part_id
                                     and d.message_id > 0
                                   order by d.part_id, d.due_at, d.message_id
                                   limit 1
                               ), true),
                               sysdate(6)
                           )
                       )
                into v_looks
                from json_table(p_parts, '$[*]' columns (part_id int path '$')) p
                left join rowq.lane l force index (primary)
                    on l.part_id = p.part_id
                   and l.lane = -1;

                select json_arrayagg(j.part_id) into v_parts
                from json_table(
                    v_looks,
                    '$[*]' columns (
                        part_id int path '$[0]',
                        began datetime(6) path '$[1]',
                        is_idle boolean path '$[2]',
                        ended datetime(6) path '$[3]'
                    )
                ) j
                where j.is_idle is true
                  and timestampdiff(microsecond, j.began, j.ended) between 0 and c_short_walk;

                select json_arrayagg(h.part_id) into v_free
                from (
                    select l.part_id
                    from json_table(v_parts, '$[*]' columns (part_id int path '$')) j
                    straight_join rowq.lane l force index (primary)
                        on l.part_id = j.part_id
                       and l.lane = -1
                    for update /*!80000 of l */ skip locked
                ) h;
                select json_arrayagg(
                           json_array(j.part_id, json_contains(coalesce(v_free, '[]'), j.part_id))
                       )
                into p_idle
                from json_table(v_parts, '$[*]' columns (part_id int path '$')) j;
                select json_arrayagg(p.part_id) into p_busy
                from json_table(p_parts, '$[*]' columns (part_id int path '$')) p
                where not json_contains(coalesce(v_parts, '[]'), p.part_id);
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
