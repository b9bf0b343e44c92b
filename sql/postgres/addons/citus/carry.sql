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

{{ carriers }}
