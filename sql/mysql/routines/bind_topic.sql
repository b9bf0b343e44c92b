drop procedure if exists rowq.bind_topic;

delimiter //
create procedure rowq.bind_topic(p_queue_name longtext, p_topic_pattern longtext)
sql security definer
modifies sql data
comment 'Bind a queue to the topics that match a pattern.'
begin
-- routine   bind_topic
-- version   1
-- purpose   Bind a queue to the topics that match a pattern.
-- promise   P15 P35
-- locks     the queue, shared; a new topic_binding row
-- commits   its own transaction if the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queue_id int;
    declare v_words varchar(200);
    declare v_outcome varchar(20);
    declare v_error varchar(120);

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

            call rowq.internal_topic_error('topic_pattern', p_topic_pattern, true, v_error);
            if v_error is not null then
                call rowq.internal_refuse(v_error);
            end if;
            call rowq.internal_require_queue(p_queue_name, v_queue_id);
            call rowq.internal_lock_queue_shared(v_queue_id, p_queue_name);

            set v_outcome = 'bound',
                v_words = trim(trailing '.' from trim(trailing '#' from p_topic_pattern));
            begin
                declare continue handler for 1062 set v_outcome = 'exists';
                insert into rowq.topic_binding (
                    queue_id, topic_pattern, word_count, matches_rest, literal_prefix, like_pattern,
                    shape
                )
                values (
                    v_queue_id, p_topic_pattern,
                    if(
                        v_words = '', 0,
                        char_length(v_words) - char_length(replace(v_words, '.', '')) + 1
                    ),
                    right(p_topic_pattern, 1) = '#',
                    trim(trailing '.' from substring_index(v_words, '*', 1)),
                    if(
                        locate('*', v_words) > 0,
                        replace(replace(v_words, '_', '!_'), '*', '%'), null
                    ),
                    replace(
                        replace(
                            replace(
                                regexp_replace(p_topic_pattern, '[^.*#]++', '0'), '.', ''
                            ),
                            '*', '1'
                        ),
                        '#', '2'
                    )
                );
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_restore_session();
    end if;
end//
delimiter ;
