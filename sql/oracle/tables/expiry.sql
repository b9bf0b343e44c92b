-- A row says when maintain looks whether a message has expired, and where it is if it is ready
-- then. Who adds a message adds one, and so does who makes it ready at a new place or gives it
-- back: maintain can forget a row whose message it does not find. A row stays until its moment,
-- also where the message has ended before. So that is no later than a day, and maintain puts it off
-- for another day until the message expires.
create table rowq_expiry (
    part_id    number(10) not null,
    expires_at timestamp(6) not null,
    expiry_id  number(19) not null,
    message_id number(19) not null,
    lane       number(2),
    seq        number(19),
    constraint rowq_expiry_pk primary key (part_id, expires_at, expiry_id)
)
organization index initrans 32
/
