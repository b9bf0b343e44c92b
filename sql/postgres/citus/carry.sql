-- The functions that carry calls between the nodes of a Citus cluster, and the role that they run
-- as. This script runs on every node where rowq was installed, as a superuser, after check.sql and
-- before rights.sql in one transaction; then distribute.sql runs on the coordinator, and route.sql
-- on every node. It may run again, and leaves the functions of another release as they are.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- Between nodes calls run as rowq_citus, so that rowq_owner need not log in anywhere. It may do
-- what rowq's routines do: let it log in from the other nodes alone. It owns what runs with its
-- rights, and nothing else: a caller may come to act as it, and to change what it owns (README.md).
-- So all that begins with to_ or each_ names types and functions by their schema.
do $$
begin
    if to_regrole('rowq_citus') is null then
        begin
            create role rowq_citus login;
        exception
            when duplicate_object or unique_violation then
                null; -- Another database of this server has made it a moment ago.
        end;
    end if;
    if not (select r.rolcanlogin from pg_roles r where r.rolname = 'rowq_citus') then
        alter role rowq_citus login;
    end if;
    if to_regnamespace('rowq_citus') is null then
        create schema rowq_citus;
        comment on schema rowq_citus is 'rowq message queue: what carries calls between nodes';
    end if;
end;
$$;

-- Where a call arrives is looked at on the node where it arrives: Citus runs a function where it is
-- called, without a word, while it does not carry calls to the node that it is for. Plans are kept,
-- though whoever carries a call has said otherwise: this runs with every call.
create or replace function rowq_citus.is_here(p_name text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
-- routine   is_here
-- purpose   Whether a name belongs to this node, as far as this node knows.
declare
    -- Inside of a query it would be called for each placement.
    v_shard constant bigint := get_shard_id_for_distribution_column('rowq_citus.route', p_name);
    v_place integer;
    v_here  integer;
begin
    select p.groupid into v_place from pg_dist_placement p where p.shardid = v_shard;
    select g.groupid into v_here from pg_dist_local_group g;
    return coalesce(v_place = v_here, false);
end;
$$;

create or replace function rowq_citus.require_arrival(p_queue_name text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
-- routine   require_arrival
-- purpose   Refuse a call that runs on another node than the one that the queue's name belongs to.
begin
    if not rowq_citus.is_here(p_queue_name) then
        raise exception 'RQ706 wrong_node: the call has not reached the node that has queue %',
            p_queue_name
            using errcode = 'RQ706', hint = 'Try again. Citus carries no call to a node whose '
                'metadata are not in sync (metadatasynced in pg_dist_node), which it mends by '
                'itself.';
    end if;
end;
$$;

create or replace function rowq_citus.require_caller()
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
-- routine   require_caller
-- purpose   Refuse a call that Citus makes on a node for a query over a table of its own.
begin
    -- Each of its sessions there commits by itself: what one has done would stay when another one
    -- fails, and it carries no call further.
    if current_setting('application_name') like 'citus\_internal gpid=%' then
        raise exception 'RQ711 invalid_argument: Citus makes this call on the nodes of a table'
            using errcode = 'RQ711', hint = 'Have it bring the rows to your session first: select '
                '... from (select ... from your_table offset 0) t';
    end if;
end;
$$;

create or replace function rowq_citus.require_own(p_queue_name text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
-- routine   require_own
-- purpose   Refuse to change, in a session that is answered by its node alone, a queue of another.
begin
    -- A routine that was carried here may add to a queue of this node whose shard was moved: one
    -- such queue must not fail publish and maintain for all others.
    if p_queue_name is not null
        and current_setting('rowq.here', true) = 'on'
        and not rowq_citus.is_here(p_queue_name)
    then
        raise exception 'RQ711 invalid_argument: rowq.here is on, and queue % is for another node',
            p_queue_name
            using errcode = 'RQ711', hint = 'Run: reset rowq.here';
    end if;
end;
$$;

create or replace function rowq_citus.groups()
returns integer[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
-- routine   groups
-- purpose   The nodes that names belong to, as far as this node knows, by Citus' numbers of them.
begin
    return array(
        select distinct p.groupid
        from pg_dist_shard s
        join pg_dist_placement p on p.shardid = s.shardid
        where s.logicalrelid = 'rowq_citus.route'::regclass
        order by p.groupid
    );
end;
$$;

create or replace function rowq_citus.nodes()
returns table (node_key text, node_group integer, node_name text, node_groups integer[])
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
-- routine   nodes
-- purpose   The nodes that names belong to, each with a name that belongs to it, and all of them.
declare
    v_groups constant integer[] := rowq_citus.groups();
    v_left   integer[] := v_groups;
    v_shard  bigint;
    v_group  integer;
begin
    -- Of 64 shards a node with one of them is met within some hundred names.
    for v_number in 1..100000 loop
        exit when cardinality(v_left) = 0;
        v_shard := get_shard_id_for_distribution_column('rowq_citus.route', 'n' || v_number);
        select p.groupid into v_group from pg_dist_placement p where p.shardid = v_shard;
        if v_group = any(v_left) then
            v_left := array_remove(v_left, v_group);
            node_key := 'n' || v_number;
            node_group := v_group;
            node_name := (
                select format('%s:%s', n.nodename, n.nodeport)
                from pg_dist_node n
                where n.groupid = v_group
                  and n.noderole = 'primary'
            );
            node_groups := v_groups;
            return next;
        end if;
    end loop;
    if cardinality(v_left) > 0 or v_groups = '{}' then
        raise exception 'RQ706 wrong_node: this node does not know all nodes that have queues'
            using errcode = 'RQ706', hint = 'Look at pg_dist_node and pg_dist_placement.';
    end if;
end;
$$;

create or replace function rowq_citus.require_node(p_node_key text, p_node_groups integer[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
-- routine   require_node
-- purpose   Refuse a call for every node that was carried to another one, or leaves one out.
begin
    if not rowq_citus.is_here(p_node_key) or rowq_citus.groups() <> p_node_groups then
        raise exception 'RQ706 wrong_node: the call for all nodes has not reached each of them once'
            using errcode = 'RQ706', hint = 'Try again. Citus carries no call to a node whose '
                'metadata are not in sync (metadatasynced in pg_dist_node), which it mends by '
                'itself.';
    end if;
end;
$$;

-- carriers: generated from contract.toml by make generate
create or replace function rowq_citus.at_create_queue_1(
    p_queue_name text, p_lease_seconds integer, p_max_attempts integer, p_backoff_base_seconds
    double precision, p_backoff_factor double precision, p_backoff_cap_seconds double precision,
    p_backoff_jitter double precision, p_archive_days integer, p_max_body_length integer,
    p_group_limit integer, p_group_after_dead text, p_group_pause_seconds double precision,
    p_max_leased integer, p_rate_limit integer, p_rate_seconds double precision, p_result_seconds
    double precision, p_history_days integer
)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_create_queue_1
-- purpose   create_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.create_queue(
        p_queue_name => p_queue_name, p_lease_seconds => p_lease_seconds, p_max_attempts =>
        p_max_attempts, p_backoff_base_seconds => p_backoff_base_seconds, p_backoff_factor =>
        p_backoff_factor, p_backoff_cap_seconds => p_backoff_cap_seconds, p_backoff_jitter =>
        p_backoff_jitter, p_archive_days => p_archive_days, p_max_body_length => p_max_body_length,
        p_group_limit => p_group_limit, p_group_after_dead => p_group_after_dead,
        p_group_pause_seconds => p_group_pause_seconds, p_max_leased => p_max_leased, p_rate_limit
        => p_rate_limit, p_rate_seconds => p_rate_seconds, p_result_seconds => p_result_seconds,
        p_history_days => p_history_days
    ) r;
end;
$$;

create or replace function rowq_citus.to_create_queue_1(
    p_queue_name text, p_lease_seconds integer, p_max_attempts integer, p_backoff_base_seconds
    double precision, p_backoff_factor double precision, p_backoff_cap_seconds double precision,
    p_backoff_jitter double precision, p_archive_days integer, p_max_body_length integer,
    p_group_limit integer, p_group_after_dead text, p_group_pause_seconds double precision,
    p_max_leased integer, p_rate_limit integer, p_rate_seconds double precision, p_result_seconds
    double precision, p_history_days integer
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_create_queue_1
-- purpose   Call at_create_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_create_queue_1(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_alter_queue_1(
    p_queue_name text, p_lease_seconds integer, p_max_attempts integer, p_backoff_base_seconds
    double precision, p_backoff_factor double precision, p_backoff_cap_seconds double precision,
    p_backoff_jitter double precision, p_archive_days integer, p_max_body_length integer,
    p_group_limit integer, p_group_after_dead text, p_group_pause_seconds double precision,
    p_max_leased integer, p_rate_limit integer, p_rate_seconds double precision, p_result_seconds
    double precision, p_history_days integer
)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_alter_queue_1
-- purpose   alter_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.alter_queue(
        p_queue_name => p_queue_name, p_lease_seconds => p_lease_seconds, p_max_attempts =>
        p_max_attempts, p_backoff_base_seconds => p_backoff_base_seconds, p_backoff_factor =>
        p_backoff_factor, p_backoff_cap_seconds => p_backoff_cap_seconds, p_backoff_jitter =>
        p_backoff_jitter, p_archive_days => p_archive_days, p_max_body_length => p_max_body_length,
        p_group_limit => p_group_limit, p_group_after_dead => p_group_after_dead,
        p_group_pause_seconds => p_group_pause_seconds, p_max_leased => p_max_leased, p_rate_limit
        => p_rate_limit, p_rate_seconds => p_rate_seconds, p_result_seconds => p_result_seconds,
        p_history_days => p_history_days
    ) r;
end;
$$;

create or replace function rowq_citus.to_alter_queue_1(
    p_queue_name text, p_lease_seconds integer, p_max_attempts integer, p_backoff_base_seconds
    double precision, p_backoff_factor double precision, p_backoff_cap_seconds double precision,
    p_backoff_jitter double precision, p_archive_days integer, p_max_body_length integer,
    p_group_limit integer, p_group_after_dead text, p_group_pause_seconds double precision,
    p_max_leased integer, p_rate_limit integer, p_rate_seconds double precision, p_result_seconds
    double precision, p_history_days integer
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_alter_queue_1
-- purpose   Call at_alter_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_alter_queue_1(
            p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds, p_backoff_factor,
            p_backoff_cap_seconds, p_backoff_jitter, p_archive_days, p_max_body_length,
            p_group_limit, p_group_after_dead, p_group_pause_seconds, p_max_leased, p_rate_limit,
            p_rate_seconds, p_result_seconds, p_history_days
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_drop_queue_1(p_queue_name text, p_force boolean)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_drop_queue_1
-- purpose   drop_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.drop_queue(p_queue_name => p_queue_name, p_force => p_force) r;
end;
$$;

create or replace function rowq_citus.to_drop_queue_1(p_queue_name text, p_force boolean)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_drop_queue_1
-- purpose   Call at_drop_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_drop_queue_1(p_queue_name, p_force) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_pause_queue_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_pause_queue_1
-- purpose   pause_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.pause_queue(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_pause_queue_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_pause_queue_1
-- purpose   Call at_pause_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_pause_queue_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_resume_queue_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_resume_queue_1
-- purpose   resume_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.resume_queue(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_resume_queue_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_resume_queue_1
-- purpose   Call at_resume_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_resume_queue_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_bind_topic_1(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_bind_topic_1
-- purpose   bind_topic, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.topic_pattern, r.outcome
    from rowq_node.bind_topic(p_queue_name => p_queue_name, p_topic_pattern => p_topic_pattern) r;
end;
$$;

create or replace function rowq_citus.to_bind_topic_1(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_bind_topic_1
-- purpose   Call at_bind_topic_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.at_bind_topic_1(p_queue_name, p_topic_pattern) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_unbind_topic_1(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_unbind_topic_1
-- purpose   unbind_topic, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.topic_pattern, r.outcome
    from rowq_node.unbind_topic(p_queue_name => p_queue_name, p_topic_pattern => p_topic_pattern) r;
end;
$$;

create or replace function rowq_citus.to_unbind_topic_1(p_queue_name text, p_topic_pattern text)
returns table (queue_name text, topic_pattern text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_unbind_topic_1
-- purpose   Call at_unbind_topic_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.topic_pattern, r.outcome
        from rowq_citus.at_unbind_topic_1(p_queue_name, p_topic_pattern) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_purge_queue_1(
    p_queue_name text, p_include_dead boolean, p_max_messages integer
)
returns table (removed bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_purge_queue_1
-- purpose   purge_queue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.removed
    from rowq_node.purge_queue(
        p_queue_name => p_queue_name, p_include_dead => p_include_dead, p_max_messages =>
        p_max_messages
    ) r;
end;
$$;

create or replace function rowq_citus.to_purge_queue_1(
    p_queue_name text, p_include_dead boolean, p_max_messages integer
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_purge_queue_1
-- purpose   Call at_purge_queue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.removed
        from rowq_citus.at_purge_queue_1(p_queue_name, p_include_dead, p_max_messages) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_enqueue_1(
    p_queue_name text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_delay_seconds double precision, p_run_at timestamp with time zone,
    p_dedup_key text, p_max_attempts integer, p_group_key text, p_predecessor_ids bigint[],
    p_on_predecessor_dead text, p_expire_seconds double precision
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_enqueue_1
-- purpose   enqueue, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.enqueue(
        p_queue_name => p_queue_name, p_body => p_body, p_body_binary => p_body_binary,
        p_message_type => p_message_type, p_headers => p_headers, p_priority => p_priority,
        p_delay_seconds => p_delay_seconds, p_run_at => p_run_at, p_dedup_key => p_dedup_key,
        p_max_attempts => p_max_attempts, p_group_key => p_group_key, p_predecessor_ids =>
        p_predecessor_ids, p_on_predecessor_dead => p_on_predecessor_dead, p_expire_seconds =>
        p_expire_seconds
    ) r;
end;
$$;

create or replace function rowq_citus.to_enqueue_1(
    p_queue_name text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_delay_seconds double precision, p_run_at timestamp with time zone,
    p_dedup_key text, p_max_attempts integer, p_group_key text, p_predecessor_ids bigint[],
    p_on_predecessor_dead text, p_expire_seconds double precision
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_enqueue_1
-- purpose   Call at_enqueue_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_enqueue_1(
            p_queue_name, p_body, p_body_binary, p_message_type, p_headers, p_priority,
            p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_enqueue_batch_1(p_queue_name text, p_messages jsonb)
returns table ("position" integer, message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_enqueue_batch_1
-- purpose   enqueue_batch, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r."position", r.message_id, r.outcome
    from rowq_node.enqueue_batch(p_queue_name => p_queue_name, p_messages => p_messages) r;
end;
$$;

create or replace function rowq_citus.to_enqueue_batch_1(p_queue_name text, p_messages jsonb)
returns table ("position" integer, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_enqueue_batch_1
-- purpose   Call at_enqueue_batch_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r."position", r.message_id, r.outcome
        from rowq_citus.at_enqueue_batch_1(p_queue_name, p_messages) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_publish_1(
    p_node_key text, p_node_groups integer[], p_topic text, p_body text, p_body_binary bytea,
    p_message_type text, p_headers jsonb, p_priority integer, p_delay_seconds double precision,
    p_run_at timestamp with time zone, p_dedup_key text, p_max_attempts integer, p_group_key text,
    p_expire_seconds double precision
)
returns table (queue_name text, message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_publish_1
-- purpose   publish, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.message_id, r.outcome
    from rowq_node.publish(
        p_topic => p_topic, p_body => p_body, p_body_binary => p_body_binary, p_message_type =>
        p_message_type, p_headers => p_headers, p_priority => p_priority, p_delay_seconds =>
        p_delay_seconds, p_run_at => p_run_at, p_dedup_key => p_dedup_key, p_max_attempts =>
        p_max_attempts, p_group_key => p_group_key, p_expire_seconds => p_expire_seconds
    ) r;
end;
$$;

create or replace function rowq_citus.each_publish_1(
    p_topic text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb, p_priority
    integer, p_delay_seconds double precision, p_run_at timestamp with time zone, p_dedup_key text,
    p_max_attempts integer, p_group_key text, p_expire_seconds double precision
)
returns table (queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_publish_1
-- purpose   Call on_publish_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        return query
        select r.queue_name, r.message_id, r.outcome
        from rowq_citus.on_publish_1(
            v_node_key, v_groups, p_topic, p_body, p_body_binary, p_message_type, p_headers,
            p_priority, p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
            p_expire_seconds
        ) r;
    end loop;
end;
$$;

create or replace function rowq_citus.on_publish_batch_1(
    p_node_key text, p_node_groups integer[], p_messages jsonb
)
returns table ("position" integer, queue_name text, message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_publish_batch_1
-- purpose   publish_batch, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r."position", r.queue_name, r.message_id, r.outcome
    from rowq_node.publish_batch(p_messages => p_messages) r;
end;
$$;

create or replace function rowq_citus.each_publish_batch_1(p_messages jsonb)
returns table ("position" integer, queue_name text, message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_publish_batch_1
-- purpose   Call on_publish_batch_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        return query
        select r."position", r.queue_name, r.message_id, r.outcome
        from rowq_citus.on_publish_batch_1(v_node_key, v_groups, p_messages) r;
    end loop;
end;
$$;

create or replace function rowq_citus.at_dequeue_fast_1(
    p_queue_name text, p_batch_size integer, p_worker_name text, p_lease_seconds integer
)
returns table (
    claim_id bigint, message_id bigint, attempt integer, message_type text, headers jsonb, body
    text, body_binary bytea, enqueued_at timestamp with time zone, lease_until timestamp with time
    zone, last_error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_dequeue_fast_1
-- purpose   dequeue_fast, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body, r.body_binary,
           r.enqueued_at, r.lease_until, r.last_error
    from rowq_node.dequeue_fast(
        p_queue_name => p_queue_name, p_batch_size => p_batch_size, p_worker_name => p_worker_name,
        p_lease_seconds => p_lease_seconds
    ) r;
end;
$$;

create or replace function rowq_citus.to_dequeue_fast_1(
    p_queue_name text, p_batch_size integer, p_worker_name text, p_lease_seconds integer
)
returns table (
    claim_id bigint, message_id bigint, attempt integer, message_type text, headers jsonb, body
    text, body_binary bytea, enqueued_at timestamp with time zone, lease_until timestamp with time
    zone, last_error text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_dequeue_fast_1
-- purpose   Call at_dequeue_fast_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.claim_id, r.message_id, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.lease_until, r.last_error
        from rowq_citus.at_dequeue_fast_1(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_listen_1(p_queue_name text)
returns table (queue_name text, outcome text, channel text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_listen_1
-- purpose   listen, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome, r.channel
    from rowq_node.listen(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_listen_1(p_queue_name text)
returns table (queue_name text, outcome text, channel text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_listen_1
-- purpose   Call at_listen_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome, r.channel
        from rowq_citus.at_listen_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_unlisten_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_unlisten_1
-- purpose   unlisten, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.unlisten(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_unlisten_1(p_queue_name text)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_unlisten_1
-- purpose   Call at_unlisten_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_unlisten_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_elect_keeper_1(p_queue_name text)
returns table (queue_name text, elected boolean)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_elect_keeper_1
-- purpose   elect_keeper, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.elected
    from rowq_node.elect_keeper(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_elect_keeper_1(p_queue_name text)
returns table (queue_name text, elected boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_elect_keeper_1
-- purpose   Call at_elect_keeper_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.elected
        from rowq_citus.at_elect_keeper_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_peek_1(p_queue_name text, p_max_messages integer)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, headers jsonb, body
    text, body_binary bytea, enqueued_at timestamp with time zone, last_error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_peek_1
-- purpose   peek, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body, r.body_binary,
           r.enqueued_at, r.last_error
    from rowq_node.peek(p_queue_name => p_queue_name, p_max_messages => p_max_messages) r;
end;
$$;

create or replace function rowq_citus.to_peek_1(p_queue_name text, p_max_messages integer)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, headers jsonb, body
    text, body_binary bytea, enqueued_at timestamp with time zone, last_error text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_peek_1
-- purpose   Call at_peek_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.headers, r.body,
               r.body_binary, r.enqueued_at, r.last_error
        from rowq_citus.at_peek_1(p_queue_name, p_max_messages) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_complete_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_results jsonb
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_complete_1
-- purpose   complete, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.complete(
        p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
        p_results => p_results
    ) r;
end;
$$;

create or replace function rowq_citus.to_complete_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_results jsonb
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_complete_1
-- purpose   Call at_complete_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_complete_1(p_queue_name, p_claim_id, p_message_ids, p_results) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_retry_later_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_delay_seconds double precision,
    p_error text
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_retry_later_1
-- purpose   retry_later, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome, r.due_at
    from rowq_node.retry_later(
        p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
        p_delay_seconds => p_delay_seconds, p_error => p_error
    ) r;
end;
$$;

create or replace function rowq_citus.to_retry_later_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_delay_seconds double precision,
    p_error text
)
returns table (message_id bigint, outcome text, due_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_retry_later_1
-- purpose   Call at_retry_later_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome, r.due_at
        from rowq_citus.at_retry_later_1(
            p_queue_name, p_claim_id, p_message_ids, p_delay_seconds, p_error
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_fail_now_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_error text
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_fail_now_1
-- purpose   fail_now, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.fail_now(
        p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids,
        p_error => p_error
    ) r;
end;
$$;

create or replace function rowq_citus.to_fail_now_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[], p_error text
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_fail_now_1
-- purpose   Call at_fail_now_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_fail_now_1(p_queue_name, p_claim_id, p_message_ids, p_error) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_release_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[]
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_release_1
-- purpose   release, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.release(
        p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_message_ids => p_message_ids
    ) r;
end;
$$;

create or replace function rowq_citus.to_release_1(
    p_queue_name text, p_claim_id bigint, p_message_ids bigint[]
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_release_1
-- purpose   Call at_release_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_release_1(p_queue_name, p_claim_id, p_message_ids) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_extend_lease_1(
    p_queue_name text, p_claim_id bigint, p_lease_seconds integer, p_progress text
)
returns table (claim_id bigint, lease_until timestamp with time zone, cancel_ids bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_extend_lease_1
-- purpose   extend_lease, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.claim_id, r.lease_until, r.cancel_ids
    from rowq_node.extend_lease(
        p_queue_name => p_queue_name, p_claim_id => p_claim_id, p_lease_seconds => p_lease_seconds,
        p_progress => p_progress
    ) r;
end;
$$;

create or replace function rowq_citus.to_extend_lease_1(
    p_queue_name text, p_claim_id bigint, p_lease_seconds integer, p_progress text
)
returns table (claim_id bigint, lease_until timestamp with time zone, cancel_ids bigint[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_extend_lease_1
-- purpose   Call at_extend_lease_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.claim_id, r.lease_until, r.cancel_ids
        from rowq_citus.at_extend_lease_1(p_queue_name, p_claim_id, p_lease_seconds, p_progress) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_cancel_1(
    p_queue_name text, p_message_ids bigint[], p_include_leased boolean
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_cancel_1
-- purpose   cancel, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.cancel(
        p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_include_leased =>
        p_include_leased
    ) r;
end;
$$;

create or replace function rowq_citus.to_cancel_1(
    p_queue_name text, p_message_ids bigint[], p_include_leased boolean
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_cancel_1
-- purpose   Call at_cancel_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_cancel_1(p_queue_name, p_message_ids, p_include_leased) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_cancel_many_1(
    p_queue_name text, p_message_type text, p_group_key text, p_header_name text, p_header_value
    text, p_enqueued_before timestamp with time zone, p_after_message_id bigint, p_max_messages
    integer
)
returns table (cancelled integer, after_message_id bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_cancel_many_1
-- purpose   cancel_many, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.cancelled, r.after_message_id
    from rowq_node.cancel_many(
        p_queue_name => p_queue_name, p_message_type => p_message_type, p_group_key => p_group_key,
        p_header_name => p_header_name, p_header_value => p_header_value, p_enqueued_before =>
        p_enqueued_before, p_after_message_id => p_after_message_id, p_max_messages =>
        p_max_messages
    ) r;
end;
$$;

create or replace function rowq_citus.to_cancel_many_1(
    p_queue_name text, p_message_type text, p_group_key text, p_header_name text, p_header_value
    text, p_enqueued_before timestamp with time zone, p_after_message_id bigint, p_max_messages
    integer
)
returns table (cancelled integer, after_message_id bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_cancel_many_1
-- purpose   Call at_cancel_many_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.cancelled, r.after_message_id
        from rowq_citus.at_cancel_many_1(
            p_queue_name, p_message_type, p_group_key, p_header_name, p_header_value,
            p_enqueued_before, p_after_message_id, p_max_messages
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_reset_1(
    p_queue_name text, p_message_ids bigint[], p_max_messages integer, p_message_type text,
    p_died_before timestamp with time zone
)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_reset_1
-- purpose   reset, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.reset(
        p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_max_messages =>
        p_max_messages, p_message_type => p_message_type, p_died_before => p_died_before
    ) r;
end;
$$;

create or replace function rowq_citus.to_reset_1(
    p_queue_name text, p_message_ids bigint[], p_max_messages integer, p_message_type text,
    p_died_before timestamp with time zone
)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_reset_1
-- purpose   Call at_reset_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_reset_1(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_discard_dead_1(
    p_queue_name text, p_message_ids bigint[], p_max_messages integer, p_message_type text,
    p_died_before timestamp with time zone
)
returns table (removed bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_discard_dead_1
-- purpose   discard_dead, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.removed
    from rowq_node.discard_dead(
        p_queue_name => p_queue_name, p_message_ids => p_message_ids, p_max_messages =>
        p_max_messages, p_message_type => p_message_type, p_died_before => p_died_before
    ) r;
end;
$$;

create or replace function rowq_citus.to_discard_dead_1(
    p_queue_name text, p_message_ids bigint[], p_max_messages integer, p_message_type text,
    p_died_before timestamp with time zone
)
returns table (removed bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_discard_dead_1
-- purpose   Call at_discard_dead_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.removed
        from rowq_citus.at_discard_dead_1(
            p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_create_schedule_1(
    p_queue_name text, p_schedule_name text, p_cron text, p_interval_seconds double precision,
    p_time_zone text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_max_attempts integer, p_group_key text, p_missed text, p_overlap boolean,
    p_starts_at timestamp with time zone, p_ends_at timestamp with time zone
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_create_schedule_1
-- purpose   create_schedule, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.schedule_name, r.outcome, r.next_run_at
    from rowq_node.create_schedule(
        p_queue_name => p_queue_name, p_schedule_name => p_schedule_name, p_cron => p_cron,
        p_interval_seconds => p_interval_seconds, p_time_zone => p_time_zone, p_body => p_body,
        p_body_binary => p_body_binary, p_message_type => p_message_type, p_headers => p_headers,
        p_priority => p_priority, p_max_attempts => p_max_attempts, p_group_key => p_group_key,
        p_missed => p_missed, p_overlap => p_overlap, p_starts_at => p_starts_at, p_ends_at =>
        p_ends_at
    ) r;
end;
$$;

create or replace function rowq_citus.to_create_schedule_1(
    p_queue_name text, p_schedule_name text, p_cron text, p_interval_seconds double precision,
    p_time_zone text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_max_attempts integer, p_group_key text, p_missed text, p_overlap boolean,
    p_starts_at timestamp with time zone, p_ends_at timestamp with time zone
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_create_schedule_1
-- purpose   Call at_create_schedule_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.at_create_schedule_1(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_alter_schedule_1(
    p_queue_name text, p_schedule_name text, p_cron text, p_interval_seconds double precision,
    p_time_zone text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_max_attempts integer, p_group_key text, p_missed text, p_overlap boolean,
    p_starts_at timestamp with time zone, p_ends_at timestamp with time zone, p_is_paused boolean
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_alter_schedule_1
-- purpose   alter_schedule, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.schedule_name, r.outcome, r.next_run_at
    from rowq_node.alter_schedule(
        p_queue_name => p_queue_name, p_schedule_name => p_schedule_name, p_cron => p_cron,
        p_interval_seconds => p_interval_seconds, p_time_zone => p_time_zone, p_body => p_body,
        p_body_binary => p_body_binary, p_message_type => p_message_type, p_headers => p_headers,
        p_priority => p_priority, p_max_attempts => p_max_attempts, p_group_key => p_group_key,
        p_missed => p_missed, p_overlap => p_overlap, p_starts_at => p_starts_at, p_ends_at =>
        p_ends_at, p_is_paused => p_is_paused
    ) r;
end;
$$;

create or replace function rowq_citus.to_alter_schedule_1(
    p_queue_name text, p_schedule_name text, p_cron text, p_interval_seconds double precision,
    p_time_zone text, p_body text, p_body_binary bytea, p_message_type text, p_headers jsonb,
    p_priority integer, p_max_attempts integer, p_group_key text, p_missed text, p_overlap boolean,
    p_starts_at timestamp with time zone, p_ends_at timestamp with time zone, p_is_paused boolean
)
returns table (schedule_name text, outcome text, next_run_at timestamp with time zone)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_alter_schedule_1
-- purpose   Call at_alter_schedule_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.schedule_name, r.outcome, r.next_run_at
        from rowq_citus.at_alter_schedule_1(
            p_queue_name, p_schedule_name, p_cron, p_interval_seconds, p_time_zone, p_body,
            p_body_binary, p_message_type, p_headers, p_priority, p_max_attempts, p_group_key,
            p_missed, p_overlap, p_starts_at, p_ends_at, p_is_paused
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_drop_schedule_1(p_queue_name text, p_schedule_name text)
returns table (schedule_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_drop_schedule_1
-- purpose   drop_schedule, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.schedule_name, r.outcome
    from rowq_node.drop_schedule(
        p_queue_name => p_queue_name, p_schedule_name => p_schedule_name
    ) r;
end;
$$;

create or replace function rowq_citus.to_drop_schedule_1(p_queue_name text, p_schedule_name text)
returns table (schedule_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_drop_schedule_1
-- purpose   Call at_drop_schedule_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.schedule_name, r.outcome
        from rowq_citus.at_drop_schedule_1(p_queue_name, p_schedule_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_run_schedule_1(p_queue_name text, p_schedule_name text)
returns table (message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_run_schedule_1
-- purpose   run_schedule, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.outcome
    from rowq_node.run_schedule(p_queue_name => p_queue_name, p_schedule_name => p_schedule_name) r;
end;
$$;

create or replace function rowq_citus.to_run_schedule_1(p_queue_name text, p_schedule_name text)
returns table (message_id bigint, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_run_schedule_1
-- purpose   Call at_run_schedule_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.outcome
        from rowq_citus.at_run_schedule_1(p_queue_name, p_schedule_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_list_schedules_1(p_queue_name text)
returns table (
    queue_name text, schedule_name text, cron text, interval_seconds double precision, time_zone
    text, is_paused boolean, next_run_at timestamp with time zone, last_run_at timestamp with time
    zone, last_message_id bigint, last_error text, missed text, overlap boolean, starts_at timestamp
    with time zone, ends_at timestamp with time zone, message_type text, priority integer,
    max_attempts integer, group_key text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_schedules_1
-- purpose   list_schedules, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
           r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
           r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
    from rowq_node.list_schedules(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_list_schedules_1(p_queue_name text)
returns table (
    queue_name text, schedule_name text, cron text, interval_seconds double precision, time_zone
    text, is_paused boolean, next_run_at timestamp with time zone, last_run_at timestamp with time
    zone, last_message_id bigint, last_error text, missed text, overlap boolean, starts_at timestamp
    with time zone, ends_at timestamp with time zone, message_type text, priority integer,
    max_attempts integer, group_key text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_schedules_1
-- purpose   Call at_list_schedules_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.at_list_schedules_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_list_schedules_1(
    p_node_key text, p_node_groups integer[], p_queue_name text
)
returns table (
    queue_name text, schedule_name text, cron text, interval_seconds double precision, time_zone
    text, is_paused boolean, next_run_at timestamp with time zone, last_run_at timestamp with time
    zone, last_message_id bigint, last_error text, missed text, overlap boolean, starts_at timestamp
    with time zone, ends_at timestamp with time zone, message_type text, priority integer,
    max_attempts integer, group_key text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_list_schedules_1
-- purpose   list_schedules, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
           r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
           r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
    from rowq_node.list_schedules(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.each_list_schedules_1(p_queue_name text)
returns table (
    queue_name text, schedule_name text, cron text, interval_seconds double precision, time_zone
    text, is_paused boolean, next_run_at timestamp with time zone, last_run_at timestamp with time
    zone, last_message_id bigint, last_error text, missed text, overlap boolean, starts_at timestamp
    with time zone, ends_at timestamp with time zone, message_type text, priority integer,
    max_attempts integer, group_key text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_list_schedules_1
-- purpose   Call on_list_schedules_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        return query
        select r.queue_name, r.schedule_name, r.cron, r.interval_seconds, r.time_zone, r.is_paused,
               r.next_run_at, r.last_run_at, r.last_message_id, r.last_error, r.missed, r.overlap,
               r.starts_at, r.ends_at, r.message_type, r.priority, r.max_attempts, r.group_key
        from rowq_citus.on_list_schedules_1(v_node_key, v_groups, p_queue_name) r;
    end loop;
end;
$$;

create or replace function rowq_citus.at_maintain_1(p_queue_name text, p_batch_size integer)
returns table (
    queue_name text, elected boolean, promoted integer, reaped integer, died integer, archived
    integer, purged integer, partitions_dropped integer, expired integer
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_maintain_1
-- purpose   maintain, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
           r.partitions_dropped, r.expired
    from rowq_node.maintain(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.to_maintain_1(p_queue_name text, p_batch_size integer)
returns table (
    queue_name text, elected boolean, promoted integer, reaped integer, died integer, archived
    integer, purged integer, partitions_dropped integer, expired integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_maintain_1
-- purpose   Call at_maintain_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
               r.partitions_dropped, r.expired
        from rowq_citus.at_maintain_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_maintain_1(
    p_node_key text, p_node_groups integer[], p_queue_name text, p_batch_size integer
)
returns table (
    queue_name text, elected boolean, promoted integer, reaped integer, died integer, archived
    integer, purged integer, partitions_dropped integer, expired integer
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_maintain_1
-- purpose   maintain, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
           r.partitions_dropped, r.expired
    from rowq_node.maintain(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.each_maintain_1(p_queue_name text, p_batch_size integer)
returns table (
    queue_name text, elected boolean, promoted integer, reaped integer, died integer, archived
    integer, purged integer, partitions_dropped integer, expired integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_maintain_1
-- purpose   Call on_maintain_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        begin
            return query
            select r.queue_name, r.elected, r.promoted, r.reaped, r.died, r.archived, r.purged,
                   r.partitions_dropped, r.expired
            from rowq_citus.on_maintain_1(v_node_key, v_groups, p_queue_name, p_batch_size) r;
        exception
            when sqlstate '08000' or sqlstate '57P01' or sqlstate '57P02' or sqlstate '57P03'
                or sqlstate '57P04' or sqlstate '57P05' or sqlstate 'RQ706'
            then
                raise warning 'node % is left out: SQLSTATE %', v_node_name, sqlstate;
        end;
    end loop;
end;
$$;

create or replace function rowq_citus.at_reap_1(p_queue_name text, p_batch_size integer)
returns table (reaped integer, died integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_reap_1
-- purpose   reap, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.reaped, r.died
    from rowq_node.reap(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.to_reap_1(p_queue_name text, p_batch_size integer)
returns table (reaped integer, died integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_reap_1
-- purpose   Call at_reap_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.reaped, r.died
        from rowq_citus.at_reap_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_promote_1(p_queue_name text, p_batch_size integer)
returns table (promoted integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_promote_1
-- purpose   promote, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.promoted
    from rowq_node.promote(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.to_promote_1(p_queue_name text, p_batch_size integer)
returns table (promoted integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_promote_1
-- purpose   Call at_promote_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.promoted
        from rowq_citus.at_promote_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_archive_1(p_queue_name text, p_batch_size integer)
returns table (archived integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_archive_1
-- purpose   archive, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.archived
    from rowq_node.archive(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.to_archive_1(p_queue_name text, p_batch_size integer)
returns table (archived integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_archive_1
-- purpose   Call at_archive_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.archived
        from rowq_citus.at_archive_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_purge_archive_1(p_queue_name text, p_batch_size integer)
returns table (purged integer, partitions_dropped integer)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_purge_archive_1
-- purpose   purge_archive, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.purged, r.partitions_dropped
    from rowq_node.purge_archive(p_queue_name => p_queue_name, p_batch_size => p_batch_size) r;
end;
$$;

create or replace function rowq_citus.to_purge_archive_1(p_queue_name text, p_batch_size integer)
returns table (purged integer, partitions_dropped integer)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_purge_archive_1
-- purpose   Call at_purge_archive_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.purged, r.partitions_dropped
        from rowq_citus.at_purge_archive_1(p_queue_name, p_batch_size) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_report_worker_1(
    p_queue_name text, p_worker_id text, p_worker_name text, p_host_name text, p_worker_version
    text, p_threads integer, p_completed bigint, p_failed bigint, p_is_ended boolean
)
returns table (queue_name text, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_report_worker_1
-- purpose   report_worker, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.outcome
    from rowq_node.report_worker(
        p_queue_name => p_queue_name, p_worker_id => p_worker_id, p_worker_name => p_worker_name,
        p_host_name => p_host_name, p_worker_version => p_worker_version, p_threads => p_threads,
        p_completed => p_completed, p_failed => p_failed, p_is_ended => p_is_ended
    ) r;
end;
$$;

create or replace function rowq_citus.to_report_worker_1(
    p_queue_name text, p_worker_id text, p_worker_name text, p_host_name text, p_worker_version
    text, p_threads integer, p_completed bigint, p_failed bigint, p_is_ended boolean
)
returns table (queue_name text, outcome text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_report_worker_1
-- purpose   Call at_report_worker_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.outcome
        from rowq_citus.at_report_worker_1(
            p_queue_name, p_worker_id, p_worker_name, p_host_name, p_worker_version, p_threads,
            p_completed, p_failed, p_is_ended
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_queue_stats_1(p_queue_name text, p_max_count integer)
returns table (
    queue_name text, is_paused boolean, ready bigint, delayed bigint, leased bigint, dead bigint,
    blocked bigint, oldest_ready_seconds double precision, lease_seconds integer, max_attempts
    integer, backoff_base_seconds double precision, backoff_factor double precision,
    backoff_cap_seconds double precision, backoff_jitter double precision, archive_days integer,
    max_body_length integer, group_limit integer, group_after_dead text, group_pause_seconds double
    precision, max_leased integer, rate_limit integer, rate_seconds double precision, result_seconds
    double precision, history_days integer
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_queue_stats_1
-- purpose   queue_stats, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
           r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
           r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
           r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
           r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
    from rowq_node.queue_stats(p_queue_name => p_queue_name, p_max_count => p_max_count) r;
end;
$$;

create or replace function rowq_citus.to_queue_stats_1(p_queue_name text, p_max_count integer)
returns table (
    queue_name text, is_paused boolean, ready bigint, delayed bigint, leased bigint, dead bigint,
    blocked bigint, oldest_ready_seconds double precision, lease_seconds integer, max_attempts
    integer, backoff_base_seconds double precision, backoff_factor double precision,
    backoff_cap_seconds double precision, backoff_jitter double precision, archive_days integer,
    max_body_length integer, group_limit integer, group_after_dead text, group_pause_seconds double
    precision, max_leased integer, rate_limit integer, rate_seconds double precision, result_seconds
    double precision, history_days integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_queue_stats_1
-- purpose   Call at_queue_stats_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
               r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
               r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
               r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
               r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
        from rowq_citus.at_queue_stats_1(p_queue_name, p_max_count) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_queue_stats_1(
    p_node_key text, p_node_groups integer[], p_queue_name text, p_max_count integer
)
returns table (
    queue_name text, is_paused boolean, ready bigint, delayed bigint, leased bigint, dead bigint,
    blocked bigint, oldest_ready_seconds double precision, lease_seconds integer, max_attempts
    integer, backoff_base_seconds double precision, backoff_factor double precision,
    backoff_cap_seconds double precision, backoff_jitter double precision, archive_days integer,
    max_body_length integer, group_limit integer, group_after_dead text, group_pause_seconds double
    precision, max_leased integer, rate_limit integer, rate_seconds double precision, result_seconds
    double precision, history_days integer
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_queue_stats_1
-- purpose   queue_stats, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
           r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
           r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
           r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
           r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
    from rowq_node.queue_stats(p_queue_name => p_queue_name, p_max_count => p_max_count) r;
end;
$$;

create or replace function rowq_citus.each_queue_stats_1(p_queue_name text, p_max_count integer)
returns table (
    queue_name text, is_paused boolean, ready bigint, delayed bigint, leased bigint, dead bigint,
    blocked bigint, oldest_ready_seconds double precision, lease_seconds integer, max_attempts
    integer, backoff_base_seconds double precision, backoff_factor double precision,
    backoff_cap_seconds double precision, backoff_jitter double precision, archive_days integer,
    max_body_length integer, group_limit integer, group_after_dead text, group_pause_seconds double
    precision, max_leased integer, rate_limit integer, rate_seconds double precision, result_seconds
    double precision, history_days integer
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_queue_stats_1
-- purpose   Call on_queue_stats_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        begin
            return query
            select r.queue_name, r.is_paused, r.ready, r.delayed, r.leased, r.dead, r.blocked,
                   r.oldest_ready_seconds, r.lease_seconds, r.max_attempts, r.backoff_base_seconds,
                   r.backoff_factor, r.backoff_cap_seconds, r.backoff_jitter, r.archive_days,
                   r.max_body_length, r.group_limit, r.group_after_dead, r.group_pause_seconds,
                   r.max_leased, r.rate_limit, r.rate_seconds, r.result_seconds, r.history_days
            from rowq_citus.on_queue_stats_1(v_node_key, v_groups, p_queue_name, p_max_count) r;
        exception
            when sqlstate '08000' or sqlstate '57P01' or sqlstate '57P02' or sqlstate '57P03'
                or sqlstate '57P04' or sqlstate '57P05' or sqlstate 'RQ706'
            then
                raise warning 'node % is left out: SQLSTATE %', v_node_name, sqlstate;
        end;
    end loop;
end;
$$;

create or replace function rowq_citus.at_get_message_1(p_queue_name text, p_message_id bigint)
returns table (
    message_id bigint, state text, priority integer, attempt integer, max_attempts integer,
    message_type text, headers jsonb, body text, body_binary bytea, dedup_key text, enqueued_at
    timestamp with time zone, due_at timestamp with time zone, claim_id bigint, worker_name text,
    lease_until timestamp with time zone, finished_at timestamp with time zone, last_error text,
    group_key text, waits_for bigint, expires_at timestamp with time zone, progress text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_get_message_1
-- purpose   get_message, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type, r.headers,
           r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id, r.worker_name,
           r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for, r.expires_at,
           r.progress
    from rowq_node.get_message(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
end;
$$;

create or replace function rowq_citus.to_get_message_1(p_queue_name text, p_message_id bigint)
returns table (
    message_id bigint, state text, priority integer, attempt integer, max_attempts integer,
    message_type text, headers jsonb, body text, body_binary bytea, dedup_key text, enqueued_at
    timestamp with time zone, due_at timestamp with time zone, claim_id bigint, worker_name text,
    lease_until timestamp with time zone, finished_at timestamp with time zone, last_error text,
    group_key text, waits_for bigint, expires_at timestamp with time zone, progress text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_get_message_1
-- purpose   Call at_get_message_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.at_get_message_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_find_message_1(p_queue_name text, p_dedup_key text)
returns table (
    message_id bigint, state text, priority integer, attempt integer, max_attempts integer,
    message_type text, headers jsonb, body text, body_binary bytea, dedup_key text, enqueued_at
    timestamp with time zone, due_at timestamp with time zone, claim_id bigint, worker_name text,
    lease_until timestamp with time zone, finished_at timestamp with time zone, last_error text,
    group_key text, waits_for bigint, expires_at timestamp with time zone, progress text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_find_message_1
-- purpose   find_message, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type, r.headers,
           r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id, r.worker_name,
           r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for, r.expires_at,
           r.progress
    from rowq_node.find_message(p_queue_name => p_queue_name, p_dedup_key => p_dedup_key) r;
end;
$$;

create or replace function rowq_citus.to_find_message_1(p_queue_name text, p_dedup_key text)
returns table (
    message_id bigint, state text, priority integer, attempt integer, max_attempts integer,
    message_type text, headers jsonb, body text, body_binary bytea, dedup_key text, enqueued_at
    timestamp with time zone, due_at timestamp with time zone, claim_id bigint, worker_name text,
    lease_until timestamp with time zone, finished_at timestamp with time zone, last_error text,
    group_key text, waits_for bigint, expires_at timestamp with time zone, progress text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_find_message_1
-- purpose   Call at_find_message_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.state, r.priority, r.attempt, r.max_attempts, r.message_type,
               r.headers, r.body, r.body_binary, r.dedup_key, r.enqueued_at, r.due_at, r.claim_id,
               r.worker_name, r.lease_until, r.finished_at, r.last_error, r.group_key, r.waits_for,
               r.expires_at, r.progress
        from rowq_citus.at_find_message_1(p_queue_name, p_dedup_key) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_get_result_1(p_queue_name text, p_message_id bigint)
returns table (
    message_id bigint, state text, finished_at timestamp with time zone, result jsonb, last_error
    text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_get_result_1
-- purpose   get_result, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.state, r.finished_at, r.result, r.last_error
    from rowq_node.get_result(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
end;
$$;

create or replace function rowq_citus.to_get_result_1(p_queue_name text, p_message_id bigint)
returns table (
    message_id bigint, state text, finished_at timestamp with time zone, result jsonb, last_error
    text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_get_result_1
-- purpose   Call at_get_result_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.state, r.finished_at, r.result, r.last_error
        from rowq_citus.at_get_result_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_get_history_1(p_queue_name text, p_message_id bigint)
returns table (
    attempt integer, worker_name text, leased_at timestamp with time zone, ended_at timestamp with
    time zone, outcome text, error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_get_history_1
-- purpose   get_history, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
    from rowq_node.get_history(p_queue_name => p_queue_name, p_message_id => p_message_id) r;
end;
$$;

create or replace function rowq_citus.to_get_history_1(p_queue_name text, p_message_id bigint)
returns table (
    attempt integer, worker_name text, leased_at timestamp with time zone, ended_at timestamp with
    time zone, outcome text, error text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_get_history_1
-- purpose   Call at_get_history_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.attempt, r.worker_name, r.leased_at, r.ended_at, r.outcome, r.error
        from rowq_citus.at_get_history_1(p_queue_name, p_message_id) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_list_dead_1(
    p_queue_name text, p_after_message_id bigint, p_max_messages integer, p_before_message_id
    bigint, p_message_type text
)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, enqueued_at timestamp
    with time zone, died_at timestamp with time zone, last_error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_dead_1
-- purpose   list_dead, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
           r.last_error
    from rowq_node.list_dead(
        p_queue_name => p_queue_name, p_after_message_id => p_after_message_id, p_max_messages =>
        p_max_messages, p_before_message_id => p_before_message_id, p_message_type => p_message_type
    ) r;
end;
$$;

create or replace function rowq_citus.to_list_dead_1(
    p_queue_name text, p_after_message_id bigint, p_max_messages integer, p_before_message_id
    bigint, p_message_type text
)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, enqueued_at timestamp
    with time zone, died_at timestamp with time zone, last_error text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_dead_1
-- purpose   Call at_list_dead_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.enqueued_at, r.died_at,
               r.last_error
        from rowq_citus.at_list_dead_1(
            p_queue_name, p_after_message_id, p_max_messages, p_before_message_id, p_message_type
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_list_claims_1(
    p_queue_name text, p_after_claim_id bigint, p_max_claims integer
)
returns table (
    queue_name text, claim_id bigint, worker_name text, message_count integer, lease_until timestamp
    with time zone, lease_left_seconds double precision
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_claims_1
-- purpose   list_claims, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
           r.lease_left_seconds
    from rowq_node.list_claims(
        p_queue_name => p_queue_name, p_after_claim_id => p_after_claim_id, p_max_claims =>
        p_max_claims
    ) r;
end;
$$;

create or replace function rowq_citus.to_list_claims_1(
    p_queue_name text, p_after_claim_id bigint, p_max_claims integer
)
returns table (
    queue_name text, claim_id bigint, worker_name text, message_count integer, lease_until timestamp
    with time zone, lease_left_seconds double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_claims_1
-- purpose   Call at_list_claims_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
               r.lease_left_seconds
        from rowq_citus.at_list_claims_1(p_queue_name, p_after_claim_id, p_max_claims) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_list_claims_1(
    p_node_key text, p_node_groups integer[], p_queue_name text, p_after_claim_id bigint,
    p_max_claims integer
)
returns table (
    queue_name text, claim_id bigint, worker_name text, message_count integer, lease_until timestamp
    with time zone, lease_left_seconds double precision
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_list_claims_1
-- purpose   list_claims, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
           r.lease_left_seconds
    from rowq_node.list_claims(
        p_queue_name => p_queue_name, p_after_claim_id => p_after_claim_id, p_max_claims =>
        p_max_claims
    ) r;
end;
$$;

create or replace function rowq_citus.each_list_claims_1(
    p_queue_name text, p_after_claim_id bigint, p_max_claims integer
)
returns table (
    queue_name text, claim_id bigint, worker_name text, message_count integer, lease_until timestamp
    with time zone, lease_left_seconds double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_list_claims_1
-- purpose   Call on_list_claims_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        begin
            return query
            select r.queue_name, r.claim_id, r.worker_name, r.message_count, r.lease_until,
                   r.lease_left_seconds
            from rowq_citus.on_list_claims_1(
                v_node_key, v_groups, p_queue_name, p_after_claim_id, p_max_claims
            ) r;
        exception
            when sqlstate '08000' or sqlstate '57P01' or sqlstate '57P02' or sqlstate '57P03'
                or sqlstate '57P04' or sqlstate '57P05' or sqlstate 'RQ706'
            then
                raise warning 'node % is left out: SQLSTATE %', v_node_name, sqlstate;
        end;
    end loop;
end;
$$;

create or replace function rowq_citus.at_list_workers_1(p_queue_name text)
returns table (
    queue_name text, worker_id text, worker_name text, host_name text, worker_version text, threads
    integer, started_at timestamp with time zone, last_seen_at timestamp with time zone,
    last_seen_seconds double precision, completed bigint, failed bigint, completed_per_second double
    precision, failed_per_second double precision
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_workers_1
-- purpose   list_workers, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
           r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
           r.completed_per_second, r.failed_per_second
    from rowq_node.list_workers(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_list_workers_1(p_queue_name text)
returns table (
    queue_name text, worker_id text, worker_name text, host_name text, worker_version text, threads
    integer, started_at timestamp with time zone, last_seen_at timestamp with time zone,
    last_seen_seconds double precision, completed bigint, failed bigint, completed_per_second double
    precision, failed_per_second double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_workers_1
-- purpose   Call at_list_workers_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
               r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
               r.completed_per_second, r.failed_per_second
        from rowq_citus.at_list_workers_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_list_workers_1(
    p_node_key text, p_node_groups integer[], p_queue_name text
)
returns table (
    queue_name text, worker_id text, worker_name text, host_name text, worker_version text, threads
    integer, started_at timestamp with time zone, last_seen_at timestamp with time zone,
    last_seen_seconds double precision, completed bigint, failed bigint, completed_per_second double
    precision, failed_per_second double precision
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_list_workers_1
-- purpose   list_workers, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version, r.threads,
           r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed, r.failed,
           r.completed_per_second, r.failed_per_second
    from rowq_node.list_workers(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.each_list_workers_1(p_queue_name text)
returns table (
    queue_name text, worker_id text, worker_name text, host_name text, worker_version text, threads
    integer, started_at timestamp with time zone, last_seen_at timestamp with time zone,
    last_seen_seconds double precision, completed bigint, failed bigint, completed_per_second double
    precision, failed_per_second double precision
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_list_workers_1
-- purpose   Call on_list_workers_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        begin
            return query
            select r.queue_name, r.worker_id, r.worker_name, r.host_name, r.worker_version,
                   r.threads, r.started_at, r.last_seen_at, r.last_seen_seconds, r.completed,
                   r.failed, r.completed_per_second, r.failed_per_second
            from rowq_citus.on_list_workers_1(v_node_key, v_groups, p_queue_name) r;
        exception
            when sqlstate '08000' or sqlstate '57P01' or sqlstate '57P02' or sqlstate '57P03'
                or sqlstate '57P04' or sqlstate '57P05' or sqlstate 'RQ706'
            then
                raise warning 'node % is left out: SQLSTATE %', v_node_name, sqlstate;
        end;
    end loop;
end;
$$;

create or replace function rowq_citus.at_list_delayed_1(
    p_queue_name text, p_after_due_at timestamp with time zone, p_after_message_id bigint,
    p_max_messages integer
)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, due_at timestamp with
    time zone, last_error text
)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_delayed_1
-- purpose   list_delayed, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
    from rowq_node.list_delayed(
        p_queue_name => p_queue_name, p_after_due_at => p_after_due_at, p_after_message_id =>
        p_after_message_id, p_max_messages => p_max_messages
    ) r;
end;
$$;

create or replace function rowq_citus.to_list_delayed_1(
    p_queue_name text, p_after_due_at timestamp with time zone, p_after_message_id bigint,
    p_max_messages integer
)
returns table (
    message_id bigint, priority integer, attempt integer, message_type text, due_at timestamp with
    time zone, last_error text
)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_delayed_1
-- purpose   Call at_list_delayed_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.message_id, r.priority, r.attempt, r.message_type, r.due_at, r.last_error
        from rowq_citus.at_list_delayed_1(
            p_queue_name, p_after_due_at, p_after_message_id, p_max_messages
        ) r;
    end if;
end;
$$;

create or replace function rowq_citus.at_list_topics_1(p_queue_name text)
returns table (queue_name text, topic_pattern text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   at_list_topics_1
-- purpose   list_topics, carried to the node that the queue's name belongs to.
begin
    perform rowq_citus.require_arrival(p_queue_name);
    return query
    select r.queue_name, r.topic_pattern
    from rowq_node.list_topics(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.to_list_topics_1(p_queue_name text)
returns table (queue_name text, topic_pattern text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   to_list_topics_1
-- purpose   Call at_list_topics_1 as who may connect to the nodes; never with a null name.
begin
    perform rowq_citus.require_caller();
    if p_queue_name is not null then
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.at_list_topics_1(p_queue_name) r;
    end if;
end;
$$;

create or replace function rowq_citus.on_list_topics_1(
    p_node_key text, p_node_groups integer[], p_queue_name text
)
returns table (queue_name text, topic_pattern text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_list_topics_1
-- purpose   list_topics, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.queue_name, r.topic_pattern
    from rowq_node.list_topics(p_queue_name => p_queue_name) r;
end;
$$;

create or replace function rowq_citus.each_list_topics_1(p_queue_name text)
returns table (queue_name text, topic_pattern text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_list_topics_1
-- purpose   Call on_list_topics_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        return query
        select r.queue_name, r.topic_pattern
        from rowq_citus.on_list_topics_1(v_node_key, v_groups, p_queue_name) r;
    end loop;
end;
$$;

create or replace function rowq_citus.on_health_1(p_node_key text, p_node_groups integer[])
returns table (check_name text, queue_name text, status text, value double precision, detail text)
language plpgsql
set search_path = pg_catalog, pg_temp
set rowq.here = 'carried'
as $$
-- routine   on_health_1
-- purpose   health, carried to the node that a key belongs to.
begin
    perform rowq_citus.require_node(p_node_key, p_node_groups);
    return query
    select r.check_name, r.queue_name, r.status, r.value, r.detail
    from rowq_node.health() r;
end;
$$;

create or replace function rowq_citus.each_health_1()
returns table (check_name text, queue_name text, status text, value double precision, detail text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
-- routine   each_health_1
-- purpose   Call on_health_1 for every node, as who may connect to it.
#variable_conflict use_column
declare
    v_node_key  pg_catalog.text;
    v_node_name pg_catalog.text;
    v_groups    integer[];
begin
    perform rowq_citus.require_caller();
    for v_node_key, v_node_name, v_groups in
        select n.node_key, n.node_name, n.node_groups
        from rowq_citus.nodes() n
        order by n.node_group
    loop
        begin
            return query
            select r.check_name, r.queue_name, r.status, r.value, pg_catalog.concat(v_node_name,
                   ': ', r.detail)
            from rowq_citus.on_health_1(v_node_key, v_groups) r;
        exception
            when sqlstate '08000' or sqlstate '57P01' or sqlstate '57P02' or sqlstate '57P03'
                or sqlstate '57P04' or sqlstate '57P05' or sqlstate 'RQ706'
            then
                return query
                select 'unreachable_node', null::pg_catalog.text, 'critical', 1::double precision,
                       pg_catalog.concat(
                           v_node_name, ': does not answer, SQLSTATE ', sqlstate);
        end;
    end loop;
end;
$$;
-- end of carriers
