-- A trigger enqueues a message for each inserted order, in the same transaction.
create table orders (
    order_number integer primary key,
    total        numeric(12, 2) not null
);

create table invoice (
    order_number integer primary key,
    total        numeric(12, 2) not null check (total > 0)
);

-- It runs as its owner, a member of rowq_producer; a role that inserts orders need not be one.
create function enqueue_order() returns trigger
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform rowq.enqueue('orders', row_to_json(new), p_message_type => 'order placed');
    return null;
end
$$;

create trigger enqueue_order
after insert on orders
for each row execute function enqueue_order();
