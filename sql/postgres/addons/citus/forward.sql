-- Create the functions that forward calls between the nodes of a Citus cluster, and their role. Run
-- it on every node with rowq, as a superuser, between check.sql and rights.sql in one transaction;
-- distribute.sql on the coordinator and route.sql on every node follow. It can be run again and
-- keeps the functions of another release.
set local citus.enable_ddl_propagation = off;
set local search_path = pg_catalog, pg_temp;
set local client_min_messages = warning;

-- Calls between nodes run as rowq_citus, so rowq_owner needs no login. It may do what rowq's
-- routines do: allow its login only from the other nodes. It owns only the functions that run with
-- its rights, because a caller can act as it and change what it owns (README.md). So functions to_*
-- and each_* qualify all names with their schema.
do $$
begin
    if to_regrole('rowq_citus') is null then
        begin
            create role rowq_citus login;
        exception
            when duplicate_object or unique_violation then
                null; -- Another database of this server has just created it.
        end;
    end if;
    if not (select r.rolcanlogin from pg_roles r where r.rolname = 'rowq_citus') then
        alter role rowq_citus login;
    end if;
    if to_regnamespace('rowq_citus') is null then
        create schema rowq_citus;
        comment on schema rowq_citus is 'rowq message queue: functions between nodes';
    end if;
end;
$$;

-- Each node checks that calls for it arrive: Citus silently runs a function locally while it does
-- not forward calls to the target node. Keep generic plans in spite of the caller's setting,
-- because this runs with every call.
create or replace function rowq_citus.is_here(p_name text)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
-- routine   is_here
-- purpose   Return whether a name belongs to this node, by this node's metadata.
declare
    -- Within a query it would be called for each placement.
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
-- purpose   Refuse a call that does not run on the node of its queue.
begin
    if not rowq_citus.is_here(p_queue_name) then
        raise exception 'RQ706 wrong_node: the call did not reach the node of queue %',
            p_queue_name
            using errcode = 'RQ706', hint = 'Try again. Citus forwards no call to a node whose '
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
-- purpose   Refuse a call that Citus makes on a node for a query of a distributed table.
begin
    -- Each of its sessions there commits alone: if one fails, the others' changes would stay. It
    -- also forwards no call.
    if current_setting('application_name') like 'citus\_internal gpid=%' then
        raise exception 'RQ711 invalid_argument: Citus makes this call on the nodes of a table'
            using errcode = 'RQ711', hint = 'Read the rows into your session first: select '
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
-- purpose   Refuse to change another node's queue in a session with rowq.here on.
begin
    -- A forwarded routine may add to a queue here whose shard was moved: such a queue must not fail
    -- publish and maintain for all others.
    if p_queue_name is not null
        and current_setting('rowq.here', true) = 'on'
        and not rowq_citus.is_here(p_queue_name)
    then
        raise exception 'RQ711 invalid_argument: queue % is on another node, and rowq.here is on',
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
-- purpose   Return Citus' group numbers of the nodes with names, by this node's metadata.
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
-- purpose   Return each node with names, with one of its names and all nodes' groups.
declare
    v_groups constant integer[] := rowq_citus.groups();
    v_left   integer[] := v_groups;
    v_shard  bigint;
    v_group  integer;
begin
    -- With 64 shards, a few hundred names reach every node.
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
        raise exception 'RQ706 wrong_node: this node does not know all nodes with queues'
            using errcode = 'RQ706', hint = 'Check pg_dist_node and pg_dist_placement.';
    end if;
end;
$$;

create or replace function rowq_citus.require_node(p_node_key text, p_node_groups integer[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
-- routine   require_node
-- purpose   Refuse a call for all nodes that reached the wrong node or omits one.
begin
    if not rowq_citus.is_here(p_node_key) or rowq_citus.groups() <> p_node_groups then
        raise exception 'RQ706 wrong_node: the call did not reach each node once'
            using errcode = 'RQ706', hint = 'Try again. Citus forwards no call to a node whose '
                'metadata are not in sync (metadatasynced in pg_dist_node), which it mends by '
                'itself.';
    end if;
end;
$$;

{{ forwarders }}
