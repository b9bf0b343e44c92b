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
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_parts, v_free longtext;

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
            set p_idle = null, p_busy = p_parts;

            -- In the caller's transaction an election lasts to its end, so go into each part there.
            if v_owns_transaction then
                call rowq.internal_look_for_idle(p_parts, v_parts);
                select json_arrayagg(h.part_id) into v_free
                from (
                    select l.part_id
                    from json_table(v_parts, '$[*]' columns (part_id int path '$')) j
                    straight_join rowq.lane l force index (primary)
                        on l.part_id = j.part_id
                       and l.lane = -1 /* claim */
                    for update /*!80000 of l */ skip locked
                ) h;
                select json_arrayagg(json_array(j.part_id, f.part_id is not null)) into p_idle
                from json_table(v_parts, '$[*]' columns (part_id int path '$')) j
                left join (
                    select distinct h.part_id
                    from json_table(v_free, '$[*]' columns (part_id int path '$')) h
                ) f on f.part_id = j.part_id;
                select json_arrayagg(p.part_id) into p_busy
                from json_table(p_parts, '$[*]' columns (part_id int path '$')) p
                left join (
                    select distinct h.part_id
                    from json_table(v_parts, '$[*]' columns (part_id int path '$')) h
                ) j on j.part_id = p.part_id
                where j.part_id is null;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;
