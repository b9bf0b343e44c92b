#!/usr/bin/env bash
# Enqueues a message with its order: enqueue.sh QUEUE_NAME ORDER_NUMBER
set -euo pipefail
usage="usage: enqueue.sh QUEUE_NAME ORDER_NUMBER"

# psql quotes the values of --set at their names after a colon, so no argument is run as SQL.
psql "${DATABASE_URL:?}" --no-psqlrc --quiet --no-align --tuples-only --set ON_ERROR_STOP=1 \
    --set queue="${1:?$usage}" --set order="${2:?$usage}" <<'SQL'
set client_min_messages = warning;
create table if not exists orders (order_number integer primary key, total numeric(12, 2));

-- The order and its message commit together.
begin;
insert into orders values (:order, 11.77);
select format('order %s: %s as message %s', :order, outcome, message_id)
from rowq.enqueue(:'queue', jsonb_build_object('order', :order, 'fail', 0));
commit;

-- After a rollback neither exists.
select :order + 1 as order \gset
begin;
insert into orders values (:order, -1);
select format('order %s: %s as message %s', :order, outcome, message_id)
from rowq.enqueue(:'queue', jsonb_build_object('order', :order, 'fail', 0));
rollback;
\echo order :order has a total of -1: it was rolled back, and its message with it
SQL
