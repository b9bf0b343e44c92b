-- rowq 0.1.0: install 1.
-- Run it with: mariadb --comments < script.sql, or mysql --comments < script.sql (without that word
-- the routines lose their descriptions). After an error run all of it again: every statement may
-- be. The part owner.sql says which account the procedures run as.

-- [before preflight.sql]
-- This script runs first in every install, upgrade and rollback. It refuses, before anything is
-- changed, what would go wrong later or would let others' code run with the rights of the account
-- that migrates. So it reads the catalog and none of rowq's tables. Without a procedure there is no
-- signal, so the text of a fault is the name of a table that does not exist.
set names utf8mb4;
set session sql_mode = concat(
    'STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,',
    'NO_ENGINE_SUBSTITUTION'
);
set session autocommit = 1;
set session lock_wait_timeout = 10;
set session innodb_lock_wait_timeout = 10;

-- RQ801: JSON tables and skip locked need MariaDB 10.6 or MySQL 8.0.21; the tables need InnoDB.
-- RQ802: rowq did not make the database rowq. (An empty one, or one with nothing but bookkeeping,
--        is a beginning of ours.) Or the database holds what rowq never makes: a view, a trigger, a
--        routine with its caller's rights. Or an account with fewer rights than this one may make
--        such things in it. Or rowq_owner exists, and not as owner.sql leaves it.
-- RQ803: the account lacks a right, both globally and in this database. Rights that come by a role
--        are not shown to the account, so nothing is refused here if it has a role.
set @rowq_version = cast(substring_index(version(), '.', 1) as unsigned) * 1000000
    + cast(substring_index(substring_index(version(), '.', 2), '.', -1) as unsigned) * 1000
    + cast(substring_index(substring_index(version(), '-', 1), '.', -1) as unsigned);
set @rowq_fault = if(
    @rowq_version < if(version() like '%MariaDB%', 10006000, 8000021),
    'RQ801 server_too_old', null
);
select if(
    @rowq_fault is null and count(*) = 0,
    'RQ801 server_too_old: it has no InnoDB', @rowq_fault
)
into @rowq_fault
from information_schema.engines e
where e.engine = 'InnoDB'
  and e.support in ('YES', 'DEFAULT');
select if(
    @rowq_fault is null
        and count(*) > coalesce(sum(c.column_name is not null), 0)
        and coalesce(sum(c.column_name is not null), 0) < 2
        and coalesce(sum(t.table_name in ('meta', 'queue', 'part')), 0) < 3,
    'RQ802 foreign_schema', @rowq_fault
)
into @rowq_fault
from information_schema.tables t
left join information_schema.columns c
    on c.table_schema = t.table_schema
   and c.table_name = t.table_name
   and c.table_name in ('migration', 'migration_log', 'migration_lock')
   and c.column_name in ('migration_hash', 'lock_name')
where t.table_schema = 'rowq';
select if(
    @rowq_fault is null and min(x.name) is not null,
    concat(
        'RQ802 foreign_schema: it holds ',
        left(regexp_replace(min(x.name), '[^0-9A-Za-z_]', '_'), 30)
    ),
    @rowq_fault
)
into @rowq_fault
from (
    select t.table_name as name
    from information_schema.tables t
    where t.table_schema = 'rowq'
      and t.table_type <> 'BASE TABLE'
    union all
    select g.trigger_name
    from information_schema.triggers g
    where g.event_object_schema = 'rowq'
    union all
    select r.routine_name
    from information_schema.routines r
    where r.routine_schema = 'rowq'
      and r.security_type = 'INVOKER'
      and r.routine_name <> 'internal_grant'
) x;
set @rowq_account = concat(
    '''',
    left(
        current_user(),
        char_length(current_user())
            - char_length(substring_index(current_user(), '@', -1)) - 1
    ),
    '''@''', substring_index(current_user(), '@', -1), ''''
);
select min(n.name) into @rowq_lacks
from (
    select 'ALTER' as name
    union all select 'ALTER ROUTINE'
    union all select 'CREATE'
    union all select 'CREATE ROUTINE'
    union all select 'DELETE'
    union all select 'DROP'
    union all select 'EXECUTE'
    union all select 'INSERT'
    union all select 'SELECT'
    union all select 'UPDATE'
) n
where n.name not in (
        select g.privilege_type
        from information_schema.user_privileges g
        where g.grantee = @rowq_account
    )
  and n.name not in (
        select d.privilege_type
        from information_schema.schema_privileges d
        where d.grantee = @rowq_account
          and 'rowq' collate utf8mb4_bin like d.table_schema
    );
set @rowq_fault = if(
    @rowq_fault is null and coalesce(current_role(), 'NONE') = 'NONE' and @rowq_lacks is not null,
    concat('RQ803 missing_privilege: ', @rowq_lacks), @rowq_fault
);
select count(*) into @rowq_rights
from information_schema.user_privileges g
where g.grantee = @rowq_account
  and g.privilege_type <> 'USAGE';
-- Rights that come by a role are not shown there. A role by which the account sees others' rights
-- counts as rights outside rowq. Another account with that role gains nothing, so the role is left
-- out below.
set @rowq_role = if(@rowq_rights = 0, concat('''', current_role(), '''@'''''), null);
select if(
    @rowq_rights = 0 and coalesce(current_role(), 'NONE') <> 'NONE' and count(*) > 0,
    1, @rowq_rights
)
into @rowq_rights
from information_schema.columns c
where c.table_schema = 'mysql'
  and c.table_name in ('global_priv', 'user')
  and find_in_set('select', c.privileges);
-- Another account gains nothing by this account's rights if it has them all, if it is SUPER, or if
-- it may create accounts and so can log in as this one (MySQL protects an account with SYSTEM_USER
-- from that). A trigger runs as the account that made it, and dumps need the right to it
-- everywhere, so it counts in rowq only. An account that may not see others' rights, or has none
-- outside rowq, is not refused.
select if(
    @rowq_fault is null and min(a.grantee) is not null,
    concat(
        'RQ802 foreign_schema: it is open to ',
        left(trim(regexp_replace(min(a.grantee), '[^0-9A-Za-z_]+', ' ')), 25)
    ),
    @rowq_fault
)
into @rowq_fault
from (
    select p.grantee
    from (
        select s.grantee, s.privilege_type, false as is_global
        from information_schema.schema_privileges s
        where 'rowq' collate utf8mb4_bin like s.table_schema
        union all
        select t.grantee, t.privilege_type, false
        from information_schema.table_privileges t
        where 'rowq' collate utf8mb4_bin like t.table_schema
        union all
        select u.grantee, u.privilege_type, true
        from information_schema.user_privileges u
    ) p
    left join information_schema.user_privileges m
        on m.grantee = @rowq_account
       and m.privilege_type = p.privilege_type
       and m.privilege_type <> 'USAGE'
       and p.is_global
    left join information_schema.user_privileges y
        on y.grantee = @rowq_account
       and y.privilege_type = 'SYSTEM_USER'
    where p.grantee not in (
            @rowq_account, '''rowq_owner''@''localhost''', coalesce(@rowq_role, '')
        )
    group by p.grantee
    having max(
            p.privilege_type in (
                'ALTER', 'ALTER ROUTINE', 'CREATE', 'CREATE ROUTINE', 'CREATE VIEW', 'DROP'
            )
            or p.privilege_type = 'TRIGGER' and not p.is_global
        )
       and not max(
            p.is_global
            and (
                p.privilege_type = 'SUPER'
                or p.privilege_type = 'CREATE USER' and y.grantee is null
            )
        )
       and count(m.grantee) < @rowq_rights
) a;
select if(
    @rowq_fault is null and @rowq_rights > 0 and count(*) > 0,
    'RQ802 foreign_schema: rowq_owner has more rights', @rowq_fault
)
into @rowq_fault
from (
    select g.grantee
    from information_schema.user_privileges g
    where g.privilege_type not in ('USAGE', 'PROCESS')
    union all
    select s.grantee
    from information_schema.schema_privileges s
    where 'rowq' collate utf8mb4_bin not like s.table_schema
    union all
    select t.grantee
    from information_schema.table_privileges t
    where 'rowq' collate utf8mb4_bin not like t.table_schema
) p
where p.grantee = '''rowq_owner''@''localhost''';
-- No view of the catalog says whether an account is locked or what a role of MariaDB may do, and
-- not every account may read the tables that do. MySQL's roles are accounts, which were looked at
-- above.
select if(
    @rowq_fault is null and @rowq_rights > 0 and count(*) > 0,
    if(
        version() like '%MariaDB%',
        'select min(if(
             g.user = ''rowq_owner'', ''rowq_owner may log in'',
             concat(
                 ''it is open to '', left(regexp_replace(g.user, ''[^0-9A-Za-z_]+'', '' ''), 25)
             )
         ))
         into @rowq_found
         from mysql.global_priv g
         join mysql.user u on u.user = g.user and u.host = g.host
         join mysql.global_priv m
             on concat(m.user, ''@'', m.host) = current_user()
             or m.user = current_role() and m.host = ''''
         where g.user = ''rowq_owner''
           and g.host = ''localhost''
           and coalesce(json_value(g.priv, ''$.account_locked''), 0) = 0
            or u.is_role = ''Y''
           and ''Y'' in (
               u.alter_priv, u.alter_routine_priv, u.create_priv, u.create_routine_priv,
               u.create_view_priv, u.drop_priv
           )
           and ''Y'' not in (u.super_priv, u.create_user_priv)
           and cast(json_value(m.priv, ''$.access'') as unsigned)
               & ~cast(json_value(g.priv, ''$.access'') as unsigned) <> 0',
        'select min(''rowq_owner may log in'') into @rowq_found
         from mysql.user u
         where u.user = ''rowq_owner''
           and u.host = ''localhost''
           and u.account_locked <> ''Y'''
    ),
    'do 0'
)
into @rowq_text
from information_schema.columns c
where c.table_schema = 'mysql'
  and (
      c.table_name = 'global_priv' and c.column_name = 'Priv'
      or c.table_name = 'user' and c.column_name = 'account_locked'
  )
  and find_in_set('select', c.privileges);
set @rowq_found = null;
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
set @rowq_fault = coalesce(@rowq_fault, concat('RQ802 foreign_schema: ', @rowq_found));
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;

-- [before bookkeeping.sql]
-- These tables say which migrations are installed, in the columns that yoyo knows, and name the
-- lock that lets in one migration at a time. Times are UTC.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;

create table if not exists rowq.migration (
    migration_hash varchar(64) not null,
    migration_id   varchar(255) not null,
    applied_at_utc datetime(6) not null,
    primary key (migration_hash)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

create table if not exists rowq.migration_log (
    id             varchar(36) not null,
    migration_hash varchar(64) not null,
    migration_id   varchar(255) not null,
    operation      varchar(10) not null,
    username       varchar(255) not null,
    hostname       varchar(255) not null,
    created_at_utc datetime(6) not null,
    primary key (id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;

-- Any session may take a lock by its name, so only accounts that may read this table can know the
-- name.
create table if not exists rowq.migration_lock (
    id        int not null,
    lock_name varchar(64) not null,
    primary key (id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin;
insert ignore into rowq.migration_lock (id, lock_name)
values (
    1,
    concat('rowq.migrate.', left(sha2(concat(uuid(), rand(), rand(), utc_timestamp(6)), 256), 40))
);

-- [before lock.sql]
-- This script lets in one migration at a time, for as long as its session lasts. RQ806: another
-- migration has not ended for 60 seconds, or it was a rollback to nothing.
set @rowq_lock = null;
select l.lock_name into @rowq_lock
from rowq.migration_lock l
where l.id = 1;
set @rowq_fault = if(
    coalesce(get_lock(@rowq_lock, 60), 0) = 0, 'RQ806 migration_busy', null
);
select if(@rowq_fault is null and count(*) = 0, 'RQ806 migration_busy', @rowq_fault)
into @rowq_fault
from rowq.migration_lock l
where l.lock_name = @rowq_lock;
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;

-- [before installed]
set @rowq_fault = null;
select if(count(*) > 0, 'RQ804 schema_newer', null) into @rowq_fault
from rowq.migration m
where m.migration_id not in ('my-0001-first-release');
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;

-- [before owner.sql]
-- The procedures run as rowq_owner@localhost, an account that the script makes: who runs it must
-- be allowed to. Where that cannot be, print another one with --without-owner.
-- This script makes the account that the routines run as. Nobody can log in as it, and it has no
-- other rights than these.
set @rowq_text = concat(
    'create user if not exists ''rowq_owner''@''localhost'' identified by ''',
    sha2(concat(uuid(), rand(), rand(), utc_timestamp(6)), 256), '-Aa1'' account lock'
);
prepare rowq_owner from @rowq_text;
execute rowq_owner;
deallocate prepare rowq_owner;
set @rowq_text = null;
alter user 'rowq_owner'@'localhost' account lock;
grant select, insert, update, delete, create, drop, alter, execute
on rowq.* to 'rowq_owner'@'localhost';

-- [file tables/database.sql]
-- There is one database, named rowq. Everything is utf8mb4 and is compared byte by byte. Names and
-- keys are kept as bytes, because even a binary collation ignores trailing blanks.
create database if not exists rowq character set utf8mb4 collate utf8mb4_bin;

-- [file tables/meta.sql]
-- The rows say what is installed: schema_version and rowq_version. Each migration writes them.
create table if not exists rowq.meta (
    name       varchar(100) not null comment 'What the value is of.',
    value      varchar(100) not null comment 'The value.',
    changed_at datetime(6) not null default current_timestamp(6) comment 'When the value was set.',
    primary key (name)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What is installed: schema_version and rowq_version.';

-- [file tables/queue.sql]
-- A row holds the settings of a queue. part_id stands for the queue in the tables below and is
-- never reused. The name is bytes, so that upper case, accents and trailing blanks matter. All
-- times are UTC.
create table if not exists rowq.queue (
    part_id              int not null auto_increment comment 'The queue; never used again for another one.',
    queue_name           varbinary(400) not null comment 'Name of the queue.',
    lease_seconds        int not null default 30 comment 'Setting: default lease.',
    max_attempts         smallint not null default 10 comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    backoff_base_seconds double not null default 5 comment 'Setting: delay before the second attempt.',
    backoff_factor       double not null default 2 comment 'Setting: growth of the delay.',
    backoff_cap_seconds  double not null default 3600 comment 'Setting: longest delay.',
    backoff_jitter       double not null default 0.2 comment 'Setting: random share taken off a delay.',
    archive_days         int not null default 0 comment 'Setting: days in the archive.',
    max_body_length      int not null default 1048576 comment 'Setting: longest body.',
    group_limit          smallint not null default 1 comment 'Setting: messages of one group in work at once.',
    group_after_dead     varchar(20) not null default 'continue' comment 'Setting: continue or hold.',
    group_pause_seconds  double not null default 0 comment 'Setting: rest of a group between two messages.',
    max_leased           int not null default 0 comment 'Setting: most messages leased at a time; 0 is no limit.',
    rate_limit           int not null default 0 comment 'Setting: most deliveries begun within rate_seconds; 0 is no limit.',
    rate_seconds         double not null default 1 comment 'Setting: the time that rate_limit is about.',
    result_seconds       double not null default 0 comment 'Setting: how long results are kept; 0 is not at all.',
    history_days         int not null default 0 comment 'Setting: days that ended attempts are kept; 0 is not at all.',
    has_started          boolean not null default false comment 'Whether there ever was a rate_limit, so that there may be rows in started.',
    has_results          boolean not null default false comment 'Whether there ever were result_seconds, so that there may be rows in result.',
    has_history          boolean not null default false comment 'Whether there ever were history_days, so that there may be rows in history.',
    paused_at            datetime(6) null comment 'Since when dequeue is stopped; null while it is not.',
    created_at           datetime(6) not null comment 'When the queue was created.',
    primary key (part_id),
    unique key queue_name_uq (queue_name),
    constraint queue_lease_seconds_ck check (lease_seconds between 1 and 86400),
    constraint queue_max_attempts_ck check (max_attempts between 1 and 10000),
    constraint queue_backoff_base_seconds_ck check (backoff_base_seconds between 0 and 86400),
    constraint queue_backoff_factor_ck check (backoff_factor between 1 and 10),
    constraint queue_backoff_cap_seconds_ck check (backoff_cap_seconds between 0 and 31536000),
    constraint queue_backoff_jitter_ck check (backoff_jitter between 0 and 1),
    constraint queue_archive_days_ck check (archive_days between 0 and 36500),
    constraint queue_max_body_length_ck check (max_body_length between 1 and 33554432),
    constraint queue_group_limit_ck check (group_limit between 1 and 100),
    constraint queue_group_after_dead_ck check (group_after_dead in ('continue', 'hold')),
    constraint queue_group_pause_seconds_ck check (group_pause_seconds between 0 and 86400),
    constraint queue_max_leased_ck check (max_leased between 0 and 100000),
    constraint queue_rate_limit_ck check (rate_limit between 0 and 100000),
    constraint queue_rate_seconds_ck check (rate_seconds between 0.1 and 86400),
    constraint queue_result_seconds_ck check (result_seconds between 0 and 31536000),
    constraint queue_history_days_ck check (history_days between 0 and 36500)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Queues and their settings.';

-- [file tables/part.sql]
-- A row stands for one queue and never changes. A call that adds or moves messages locks it in
-- share mode to the end of its transaction, and drop_queue locks it exclusively. The row of table
-- queue is not used for this, so that pausing and altering a queue never wait for a producer.
create table if not exists rowq.part (
    part_id int not null comment 'The queue; never used again for another one.',
    primary key (part_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row a queue, which is locked while messages are added or moved, and never changes.';

-- [file tables/lane.sql]
-- A row is a lane of a part. create_queue makes twenty for messages (priority * 2, plus 1 for the
-- tail). floor is where the live rows of the lane begin: a hint that spares readers the dead rows
-- below it, which InnoDB keeps as long as a read view may want them. dequeue moves the floor up
-- behind what it took, but never nearer than half a second to now. maintain looks from 0
-- (internal_rescan_floors) and corrects the floor, so a wrong floor delays a message and never
-- loses one. Lanes below 0 stand for the other tables that are read from their low end: -1 claim
-- (claim_id), -2 delayed (due_at in microseconds since 1970), -3 finished (finish_id), -5 recheck
-- (due_at, too), -6 started (started_at, too), -7 the claims once more, for those who count them:
-- its floor never passes a claim that may yet be committed, -8 expiry (expires_at, too), and -9
-- result (finished_at, too). A lock on one of these rows elects one session: on -1 for maintain,
-- on -3 for its archive part, and on -4, which stands for no table, for the waiter of dequeue_wait
-- that looks for all. Dequeue does not look into a closed lane, and where only one is open, it
-- takes a short way. The tail of the default priority (11) is always open; another lane is opened
-- by the first message that is put there, and maintain closes an empty front lane again, not
-- before its sweep_at. While an open transaction holds the row of a closed lane, so that others
-- cannot open it, is_open of a lane below 0 has dequeue look into closed lanes too: maintain sets
-- it of lane -1, others leave a mark, a row of a random lane that is below -1000, which maintain
-- deletes. maintain passes over an idle queue until the sweep_at of lane -1.
create table if not exists rowq.lane (
    part_id     int not null comment 'The queue; never used again for another one.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    is_open     boolean not null default false comment 'Whether dequeue looks into the lane; a mark of its own where the lane is below 0.',
    floor       bigint not null default 0 comment 'Where the live rows of the lane begin: a hint.',
    check_after datetime(6) not null default '1970-01-01 00:00:00' comment 'No rescan looks at the lane before this moment.',
    sweep_at    datetime(6) not null default '1970-01-01 00:00:00' comment 'No sweep, a rescan from the very start, begins before this moment.',
    primary key (part_id, lane)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Lanes of each queue, and where their live rows begin, so that no reader walks the dead rows before them.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/gate.sql]
-- A row is the right to take messages of a queue that has limits: a dequeue locks it before it
-- counts what is leased. last_claim_id tells a caller's transaction whether its snapshot is older
-- than that, and maintain which claims there have been. Each dequeue that leases updates it, while
-- it holds the row anyway; no index changes, so that there are no dead rows.
create table if not exists rowq.gate (
    part_id       int not null comment 'The queue; never used again for another one.',
    last_claim_id bigint not null default 0 comment 'The newest claim that was made under the queue''s limits.',
    primary key (part_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One row a queue, which a dequeue of a limited queue locks while it counts and takes.';

-- [file tables/message.sql]
-- A row is what the producer handed over. It is written once and deleted once; only a failure that
-- another attempt follows updates last_error and due_at, reset gives last_error back, and the first
-- message that waits for it sets has_successors. The error of a dead message is in dead.
-- enqueued_at finds a message that was never given back, because its seq in ready is the same
-- moment in microseconds. due_at is the last place that the message had in delayed.
create table if not exists rowq.message (
    message_id     bigint not null auto_increment comment 'The message.',
    part_id        int not null comment 'The queue; never used again for another one.',
    max_attempts   smallint null comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    enqueued_at    datetime(6) not null comment 'When the producer handed it over.',
    due_at         datetime(6) null comment 'When a delayed message becomes ready.',
    message_type   varchar(200) null comment 'The producer''s label.',
    dedup_key      varbinary(800) null comment 'The producer''s dedup key.',
    headers        json null comment 'The producer''s headers.',
    body           longtext null comment 'Text body, or null.',
    body_binary    longblob null comment 'Binary body, or null.',
    last_error     varchar(2000) null comment 'What went wrong last, or null.',
    group_key      varbinary(800) null comment 'The producer''s group key.',
    has_successors boolean null comment 'Whether a message has waited for this one; null for no.',
    expires_at     datetime(6) null comment 'When maintain withdraws the message unless it has ended, or null.',
    primary key (message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What the producers handed over: written once, deleted once.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/ready.sql]
-- A row is a message that waits for a worker. The primary key is the dequeue order, and there is no
-- second index. lane is priority * 2, plus 1 for the tail: a message that is released or reaped
-- goes to the front lane. seq is the moment of entry, in microseconds since 1970 UTC, plus the
-- place in its batch, so that producers share no number generator; message_id decides between equal
-- ones. Each lane ends in two fence rows (message_id 0; seq 2^63 - 2 and 2^63 - 1), because InnoDB
-- compares the end of a range with live rows only: without them a scan would walk the dead rows of
-- the next lane. Every reader of a lane says "force index (primary)" and "seq <
-- 9223372036854775806", and selects attempt, because a covering plan would drop the range and
-- ignore the floor. Nothing but drop_queue deletes fence rows. is_keyed is false for a message that
-- is known to have no key; one that was given back or has waited for its time counts as one
-- that may have.
create table if not exists rowq.ready (
    part_id    int not null comment 'The queue; never used again for another one.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    seq        bigint not null comment 'Place in the lane; it only grows.',
    message_id bigint not null comment 'The message.',
    attempt    smallint not null default 0 comment 'How many times the message has been leased.',
    is_keyed   boolean not null default true comment 'Whether a message may have a key, dedup or group; false where it is known that none has.',
    primary key (part_id, lane, seq, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for a worker; the primary key is the order of delivery.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/delayed.sql]
-- A row is a message that waits for its time, kept apart so that dequeue does not read it. The
-- primary key is the order in which messages become due. A part ends in two fence rows (message_id
-- 0), as a lane of ready does: due_at 9999-12-31 23:59:59.999998 and .999999. Readers pass over
-- them by "message_id > 0" or by a bound on due_at, and select attempt, as those of ready do.
-- group_key is of one that joins its group when it is due; one that is retried has its token, and
-- none here.
create table if not exists rowq.delayed (
    part_id    int not null comment 'The queue; never used again for another one.',
    due_at     datetime(6) not null comment 'When a delayed message becomes ready.',
    message_id bigint not null comment 'The message.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt    smallint not null default 0 comment 'How many times the message has been leased.',
    group_key  varbinary(800) null comment 'Group that the message joins when it is due; null for one that has its token.',
    primary key (part_id, due_at, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for their time.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/claim.sql]
-- A row is one successful dequeue: the messages of the batch under one lease. Where their ids
-- follow each other in the order of delivery, and lane and attempt are the same, the row has
-- first_id and last_id, and messages is null; that is a quarter of the work for a batch of 100. Any
-- other batch is a JSON array of arrays that begin with message_id, lane and attempt, and the four
-- columns are null or count for nothing. A table of leased messages was as fast (batch 100 and 10,
-- measured), but REPEATABLE READ locks its ranges with their gaps, and every dequeue inserts at its
-- end; a lock on one row by its whole key covers no gap. A heartbeat updates lease_until, which is
-- in no index. claim_id is uuid_short without the bits above 2^53, which some languages round away:
-- auto_increment would ask for a second key. It grows in the order of time on one server. is_keyed
-- is false where no message has a key. A part begins with two fence rows (claim_id -2 and
-- -1): a scan that passes the end of the part before stops there, and not after all dead rows. So
-- readers say "claim_id > 0". cancel_ids is a JSON array of ids, null but where messages were
-- cancelled while the worker had them. progress is null until a heartbeat says it.
create table if not exists rowq.claim (
    part_id     int not null comment 'The queue; never used again for another one.',
    claim_id    bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    lease_until datetime(6) not null comment 'When the lease runs out.',
    worker_name varchar(200) null comment 'Who holds the lease.',
    leased_at   datetime(6) not null default '1970-01-01 00:00:00' comment 'When the dequeue leased the message.',
    is_keyed    boolean not null default true comment 'Whether a message may have a key, dedup or group; false where it is known that none has.',
    lane        smallint null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt     smallint null comment 'How many times the message has been leased.',
    first_id    bigint null comment 'First message of a batch whose ids follow each other; null for any other.',
    last_id     bigint null comment 'Last message of a batch whose ids follow each other; null for any other.',
    messages    longtext null comment 'The batch as arrays of message_id, lane and attempt, as JSON; null where first_id to last_id say it.',
    cancel_ids  longtext null comment 'Messages of the batch that were cancelled while the worker had them; null where there is none.',
    progress    varchar(2000) null comment 'How far the work is, as the worker said last.',
    primary key (part_id, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'One successful dequeue each: the lease of a batch.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/dead.sql]
-- A row is a message that failed for good. It stays until it is reset, cancelled or purged. The
-- reason is here, because its message row may be locked by a producer that has just named it, and
-- whoever declares it dead waits for nobody. holds_group is true where it has kept the token of its
-- group, and else null.
create table if not exists rowq.dead (
    part_id     int not null comment 'The queue; never used again for another one.',
    message_id  bigint not null comment 'The message.',
    lane        smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt     smallint not null comment 'How many times the message has been leased.',
    died_at     datetime(6) not null comment 'When it failed for good.',
    last_error  varchar(2000) null comment 'What went wrong last, or null.',
    holds_group boolean null comment 'Whether the dead message has kept its token, so that its group waits; else null.',
    primary key (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that failed for good, until they are reset, cancelled or purged.';

-- [file tables/dedup.sql]
-- A row is the dedup key of an unfinished message, compared byte by byte. The row format is named,
-- because others, which may be the server's default, take no key of more than 767 bytes.
create table if not exists rowq.dedup (
    part_id    int not null comment 'The queue; never used again for another one.',
    dedup_key  varbinary(800) not null comment 'The producer''s dedup key.',
    message_id bigint not null comment 'The message.',
    primary key (part_id, dedup_key)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Dedup keys of unfinished messages.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/grouped.sql]
-- A row is a message that waits behind others of its group, kept apart so that dequeue does not
-- read it. Those who look into one group name it by "=", so that InnoDB stops at its end. A part
-- ends in two fence rows (message_id 0; group_key FF and FFFF, which no text is), as a lane of
-- ready does, for those who go from group to group. So these say "message_id > 0" or
-- "group_key < x'FF'".
create table if not exists rowq.grouped (
    part_id    int not null comment 'The queue; never used again for another one.',
    group_key  varbinary(800) not null comment 'The producer''s group key.',
    message_id bigint not null comment 'The message.',
    lane       smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    primary key (part_id, group_key, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait behind others of their groups.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/message_group.sql]
-- A row is a token: the right of one message of a group to be ready, leased or delayed for a retry.
-- It does not say whose it is: whoever finishes a message of the group passes one on or gives it
-- back, in the transaction that ends the message. Rows are inserted, locked and deleted, never
-- updated. A producer that joins the group locks all of its rows, so that nobody gives the last one
-- back while a message is coming.
create table if not exists rowq.message_group (
    part_id   int not null comment 'The queue; never used again for another one.',
    group_key varbinary(800) not null comment 'The producer''s group key.',
    token_no  smallint not null comment 'Number of the token in its group, from 1.',
    primary key (part_id, group_key, token_no)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Tokens: each is the right of one message of a group to be ready, leased or waiting for a retry.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/blocked.sql]
-- A row is a message that waits for others to end, its predecessors, kept apart so that dequeue
-- does not read it. It waits for one of them at a time, the newest that has not ended
-- (predecessor_id, with a row in successor); rest_ids are the others that it may still have to ask
-- for, newest first. Rows are found by their whole keys; only purge_queue goes from one to the
-- next.
create table if not exists rowq.blocked (
    part_id        int not null comment 'The queue; never used again for another one.',
    message_id     bigint not null comment 'The message.',
    lane           smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    predecessor_id bigint null comment 'The message that it waits for now; null where that is to be found out.',
    due_at         datetime(6) null comment 'When the message may be delivered, if it has a time of its own.',
    on_dead        varchar(20) null comment 'What a dead predecessor does to the message: hold, continue or fail; null is hold.',
    group_key      varbinary(800) null comment 'The group that it joins when it waits for nothing any more.',
    rest_ids       longtext null comment 'The other messages that it may have to wait for, in order.',
    primary key (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Messages that wait for others to end.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/successor.sql]
-- A row says which message waits for which other one. Whoever ends a message whose has_successors
-- is true deletes its rows, in the same transaction. Readers name part and predecessor by "=", so
-- that InnoDB stops at their end and walks over no dead rows of others.
create table if not exists rowq.successor (
    part_id        int not null comment 'The queue; never used again for another one.',
    predecessor_id bigint not null comment 'The message that it waits for now; null where that is to be found out.',
    message_id     bigint not null comment 'The message.',
    primary key (part_id, predecessor_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Which message waits for which other one.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/recheck.sql]
-- A row is something that has to be looked at again, because another transaction held what was
-- looked at, or because there was too much of it. With a group_key it is a token that its last
-- owner could not pass on, or whose group rests; is_hint says that there is no token yet: the
-- group's limit was raised, and there may be one to take. With a message_id it is a blocked message
-- that waits for nothing any more, perhaps. With a predecessor_id it is a message that has ended,
-- of which not all successors were freed; is_hint says that it is dead. maintain looks at what is
-- due, and so does a dequeue that finds nothing. A part ends in two fence rows (recheck_id 0), as
-- in delayed, and readers select is_hint, as those of delayed do attempt.
create table if not exists rowq.recheck (
    part_id        int not null comment 'The queue; never used again for another one.',
    due_at         datetime(6) not null comment 'Maintain looks at it from this moment on.',
    recheck_id     bigint not null comment 'Makes the key unique.',
    message_id     bigint null comment 'A blocked message that may wait for nothing any more.',
    predecessor_id bigint null comment 'A message that has ended, of which not all successors were freed.',
    group_key      varbinary(800) null comment 'The group that the token is of; null where it is no token.',
    is_hint        boolean not null default false comment 'Whether there is no token yet, but may be one to take; of a predecessor: whether it is dead.',
    primary key (part_id, due_at, recheck_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'What could not be passed on at once, because others were at work on it: tokens of groups, messages that waited for others; maintain looks at it again.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/started.sql]
-- A row says when a dequeue of a queue with a rate_limit has begun deliveries, and how many. It
-- stays until maintain finds it older than rate_seconds. A part begins with two fence rows
-- (claim_id -2 and -1), as in claim. So readers say "claim_id > 0", or name the moment from which
-- on they read.
create table if not exists rowq.started (
    part_id    int not null comment 'The queue; never used again for another one.',
    started_at datetime(6) not null comment 'When the dequeue leased them.',
    claim_id   bigint not null comment 'The claim that holds the lease; pass it to the finishing routines.',
    messages   int not null comment 'How many messages the dequeue leased.',
    primary key (part_id, started_at, claim_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'The deliveries of queues with a rate_limit that began within their rate_seconds: a row each dequeue.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/expiry.sql]
-- A row says when a message expires, and where it is if it is ready then. Who adds a message adds
-- one, and so does who makes it ready under a new number or gives it back: maintain can forget a
-- row whose message it does not find. A row stays until its moment, also where the message has
-- ended before. A part ends in two fence rows (expiry_id 0), as in delayed, and readers select
-- message_id, which is outside of the key.
create table if not exists rowq.expiry (
    part_id    int not null comment 'The queue; never used again for another one.',
    expires_at datetime(6) not null comment 'Maintain looks for the message from this moment on.',
    expiry_id  bigint not null comment 'Makes the key unique.',
    message_id bigint not null comment 'The message.',
    lane       smallint null comment 'Lane in which the message is if it is ready.',
    seq        bigint null comment 'Its place there; null where the row was written for another place.',
    primary key (part_id, expires_at, expiry_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'When messages expire: what is due is withdrawn by maintain, or has ended before.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/result.sql]
-- A row says how a message has ended, in a queue with result_seconds. It stays until maintain finds
-- it older than these, or the message, which is dead, is reset. Rows are locked by the primary key
-- only; maintain reads the other index without a lock. A part ends there in two fence rows
-- (message_id below 1), as in delayed, and readers of that index select state, which is outside of
-- it.
create table if not exists rowq.result (
    part_id     int not null comment 'The queue; never used again for another one.',
    message_id  bigint not null comment 'The message.',
    finished_at datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled, expired or dead.',
    result      json null comment 'What complete was given for the message, or null.',
    last_error  varchar(2000) null comment 'What went wrong last, or null.',
    primary key (part_id, message_id),
    key result_finished_ix (part_id, finished_at)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'How messages have ended, with their results, kept for the queue''s result_seconds.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/history.sql]
-- A row is an attempt that has ended, in a queue with history_days. It stays until maintain finds
-- it older than these. The table has no partition a day, unlike the archive: every call that
-- finishes messages of such a queue writes here, in the caller's transaction perhaps, and a
-- statement that adds or drops a partition waits for all open ones, with whoever comes later
-- waiting behind it. A part ends in two fence rows (message_id 0), as in delayed, and readers by
-- the primary key select outcome, which is outside of it.
create table if not exists rowq.history (
    part_id     int not null comment 'The queue; never used again for another one.',
    ended_at    datetime(6) not null comment 'When the attempt ended.',
    message_id  bigint not null comment 'The message.',
    attempt     smallint not null comment 'How many times the message has been leased.',
    claim_id    bigint not null comment 'The claim that held the message.',
    worker_name varchar(200) null comment 'Who held the lease.',
    leased_at   datetime(6) not null comment 'When the dequeue leased the message.',
    outcome     varchar(20) not null comment 'completed, retrying, dead, released, lease_expired or cancelled.',
    error       varchar(2000) null comment 'What the worker said went wrong, or that the lease expired; else null.',
    primary key (part_id, ended_at, message_id, claim_id),
    key history_message_ix (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Attempts that have ended, kept for the queue''s history_days.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/finished.sql]
-- A row is a batch of finished messages of a queue that keeps an archive, as a JSON array like that
-- of a claim. It stays until the archive routine has moved the messages. A part begins with two
-- fence rows (finish_id -2 and -1), as in claim. So readers say "finish_id > 0".
create table if not exists rowq.finished (
    part_id     int not null comment 'The queue; never used again for another one.',
    finish_id   bigint not null auto_increment comment 'The call that finished the messages; the archive goes in this order.',
    finished_at datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    state       varchar(20) not null comment 'completed, cancelled or expired.',
    messages    longtext not null comment 'The batch as arrays of message_id, lane and attempt, as JSON.',
    primary key (part_id, finish_id),
    key finish_id_ix (finish_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages of queues that keep an archive, until archive moves them there.'
stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/archive.sql]
-- A row is a finished message. There is one partition a day (pYYYYMMDD, UTC), which is dropped when
-- no queue needs it. The last partition takes every later day, so that a row always finds its
-- place; maintain splits days off it.
create table if not exists rowq.archive (
    part_id      int not null comment 'The queue; never used again for another one.',
    finished_at  datetime(6) not null comment 'When it was completed, cancelled, expired or declared dead.',
    message_id   bigint not null comment 'The message.',
    lane         smallint not null comment 'priority * 2, plus 1 for the tail; a lane below 0 stands for another table.',
    attempt      smallint not null comment 'How many times the message has been leased.',
    enqueued_at  datetime(6) not null comment 'When the producer handed it over.',
    state        varchar(20) not null comment 'completed, cancelled or expired.',
    message_type varchar(200) null comment 'The producer''s label.',
    dedup_key    varbinary(800) null comment 'The producer''s dedup key.',
    headers      json null comment 'The producer''s headers.',
    body         longtext null comment 'Text body, or null.',
    body_binary  longblob null comment 'Binary body, or null.',
    group_key    varbinary(800) null comment 'The producer''s group key.',
    primary key (part_id, finished_at, message_id),
    key archive_message_ix (part_id, message_id)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Finished messages, kept for the queue''s archive_days.'
partition by range columns (finished_at) (
    partition plater values less than (maxvalue)
);

-- [file tables/schedule.sql]
-- A row is a schedule: maintain adds its message to the queue in the transaction that moves
-- next_run_at on. next_run_at is null while it is paused, and after its last tick. A queue has few
-- schedules, so the due ones are found by reading them all.
create table if not exists rowq.schedule (
    part_id          int not null comment 'The queue; never used again for another one.',
    schedule_name    varbinary(400) not null comment 'Name of the schedule.',
    cron             varchar(200) null comment 'Its times as in a crontab, or null.',
    interval_seconds double null comment 'Seconds between its ticks, or null.',
    time_zone        varchar(64) not null comment 'Whose clocks cron means.',
    missed           varchar(20) not null comment 'What becomes of late ticks: skip, once or all.',
    overlap          boolean not null comment 'Whether a tick makes a message while that of an earlier one has not ended.',
    starts_at        datetime(6) not null comment 'No tick comes before this moment; intervals are counted from it.',
    ends_at          datetime(6) null comment 'No tick comes after this moment, or null.',
    message_type     varchar(200) null comment 'The producer''s label.',
    headers          json null comment 'The producer''s headers.',
    priority         smallint not null comment '0 to 9; 0 is delivered first.',
    group_key        varbinary(800) null comment 'The producer''s group key.',
    max_attempts     smallint null comment 'Leases before a message is dead; of a message: null for the queue''s setting.',
    body             longtext null comment 'Text body, or null.',
    body_binary      longblob null comment 'Binary body, or null.',
    is_paused        boolean not null default false comment 'It is stopped: a queue delivers nothing, a schedule makes no message.',
    next_run_at      datetime(6) null comment 'The next tick; null while the schedule is paused, and after its last one.',
    last_run_at      datetime(6) null comment 'When it last made a message, or null.',
    last_message_id  bigint null comment 'The message that it made then, or null.',
    last_error       varchar(2000) null comment 'What went wrong last, or null.',
    primary key (part_id, schedule_name),
    constraint schedule_cron_ck check ((cron is null) <> (interval_seconds is null)),
    constraint schedule_missed_ck check (missed in ('skip', 'once', 'all'))
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Schedules, whose messages maintain adds to their queues when they are due.'
row_format = dynamic stats_persistent = 1 stats_auto_recalc = 0;

-- [file tables/topic_binding.sql]
-- A row says that a queue gets what is published under the topics that a pattern matches. Where a
-- pattern has no "*", a topic that begins with literal_head needs no other look. Bindings are few
-- and seldom change, and a producer locks none of them. Whoever binds a queue, or unbinds it, holds
-- its part, shared.
create table if not exists rowq.topic_binding (
    part_id       int not null comment 'The queue; never used again for another one.',
    topic_pattern varbinary(200) not null comment 'What of the topics the queue gets.',
    word_count    smallint not null comment 'How many words the pattern has, without #.',
    has_rest      boolean not null comment 'Whether any words may follow, or none: the pattern ends with #.',
    literal_head  varbinary(200) not null comment 'The words before the first * or #, which the topic has to begin with.',
    like_pattern  varbinary(400) null comment 'What the topic''s first word_count words are compared with, ! before what is no wildcard; null where literal_head has said it.',
    primary key (part_id, topic_pattern),
    key topic_binding_head_ix (literal_head, word_count, has_rest, like_pattern)
) engine = innodb default character set utf8mb4 collate utf8mb4_bin
comment = 'Which queue gets what is published under which topics.';

-- [file internal/add_part.sql]
drop procedure if exists rowq.internal_add_part;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_add_part(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_add_part
-- purpose   Insert the part row, the gate, the lanes and the fence rows of a new queue.
-- promise   P13
-- locks     new rows only
-- differs   PostgreSQL opens lanes when they are first used, and needs no fence rows
    declare v_lane smallint default 0;

    insert into rowq.part (part_id) values (p_part_id);
    insert into rowq.gate (part_id) values (p_part_id);
    while v_lane < 20 do
        -- The tail of the default priority is open from the start, because most queues use no other
        -- lane.
        insert into rowq.lane (part_id, lane, is_open)
        values (p_part_id, v_lane, v_lane = 11);
        insert into rowq.ready (part_id, lane, seq, message_id)
        values
            (p_part_id, v_lane, 9223372036854775806, 0),
            (p_part_id, v_lane, 9223372036854775807, 0);
        set v_lane = v_lane + 1;
    end while;

    insert into rowq.lane (part_id, lane)
    values
        (p_part_id, -1), (p_part_id, -2), (p_part_id, -3), (p_part_id, -4), (p_part_id, -5),
        (p_part_id, -6), (p_part_id, -7), (p_part_id, -8), (p_part_id, -9), (p_part_id, -10);
    insert into rowq.delayed (part_id, due_at, message_id, lane)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, 11),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, 11);
    insert into rowq.grouped (part_id, group_key, message_id, lane)
    values (p_part_id, x'FF', 0, 11), (p_part_id, x'FFFF', 0, 11);
    insert into rowq.recheck (part_id, due_at, recheck_id, group_key)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, ''),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, '');
    insert into rowq.expiry (part_id, expires_at, expiry_id, message_id)
    values
        (p_part_id, '9999-12-31 23:59:59.999998', 0, 0),
        (p_part_id, '9999-12-31 23:59:59.999999', 0, 0);
    insert into rowq.result (part_id, message_id, finished_at, state)
    values
        (p_part_id, -1, '9999-12-31 23:59:59.999998', 'completed'),
        (p_part_id, 0, '9999-12-31 23:59:59.999999', 'completed');
    insert into rowq.history (
        part_id, ended_at, message_id, attempt, claim_id, leased_at, outcome
    )
    values
        (
            p_part_id, '9999-12-31 23:59:59.999998', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        ),
        (
            p_part_id, '9999-12-31 23:59:59.999999', 0, 0, 0, '9999-12-31 00:00:00', 'completed'
        );
    insert into rowq.claim (part_id, claim_id, lease_until, messages)
    values
        (p_part_id, -2, '9999-12-31 00:00:00', '[]'),
        (p_part_id, -1, '9999-12-31 00:00:00', '[]');
    insert into rowq.started (part_id, started_at, claim_id, messages)
    values
        (p_part_id, '1970-01-01 00:00:00', -2, 0),
        (p_part_id, '1970-01-01 00:00:00', -1, 0);
    insert into rowq.finished (part_id, finish_id, finished_at, state, messages)
    values
        (p_part_id, -2, '9999-12-31 00:00:00', 'completed', '[]'),
        (p_part_id, -1, '9999-12-31 00:00:00', 'completed', '[]');
end//
delimiter ;

-- [file internal/admit.sql]
drop procedure if exists rowq.internal_admit;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_admit(
    p_part_id int,
    p_wanted int,
    p_max_leased int,
    inout p_rate_limit int,
    p_rate_seconds double,
    p_owns_transaction boolean,
    out p_room int,
    out p_last_claim_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_admit
-- purpose   Return how many messages a dequeue may lease under its queue's limits, the rate_limit by then, and the last claim before it; from then on it is alone until its transaction ends.
-- promise   P28 P29
-- locks     the gate of the queue
-- errors    RQ713
-- differs   elsewhere the level of the transaction can be read, and not only that of the session
    declare v_is_old boolean default
        not p_owns_transaction
        and /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
            <> 'READ-COMMITTED';
    declare v_is_paused boolean;
    set p_room = 0, p_last_claim_id = null;

    -- An older snapshot does not show what others have leased since, and READ UNCOMMITTED takes
    -- for gone what may be rolled back. The level of one transaction stands in no variable, so the
    -- session's counts.
    if not v_is_old then
        -- Look first, because a poll of a queue without room shall neither wait nor write.
        call rowq.internal_room(
            p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_room
        );
        if p_room > 0 then
            call rowq.internal_lock_gate(p_part_id, p_last_claim_id);
        end if;
    end if;

    if p_last_claim_id is not null and not p_owns_transaction then
        -- REPEATABLE READ may have been chosen for this transaction only. A snapshot that shows the
        -- last one to have held the gate shows all before it, too.
        select not g.last_claim_id <=> p_last_claim_id into v_is_old
        from rowq.gate g
        where g.part_id = p_part_id;
    end if;
    if v_is_old then
        signal sqlstate '45713'
            set message_text =
                'RQ713 wrong_transaction_state: limits ask for read committed in the session';
    end if;

    if p_last_claim_id is null then
        set p_room = 0;
    else
        -- Look again, in statements of their own: their snapshots are newer than the lock, so they
        -- see what the session leased that held the gate before, and settings that were changed
        -- meanwhile.
        select q.paused_at is not null, q.max_leased, q.rate_limit, q.rate_seconds
        into v_is_paused, p_max_leased, p_rate_limit, p_rate_seconds
        from rowq.queue q
        where q.part_id = p_part_id;
        if v_is_paused then
            set p_room = 0;
        else
            call rowq.internal_room(
                p_part_id, p_wanted, p_max_leased, p_rate_limit, p_rate_seconds, p_room
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/archive.sql]
drop procedure if exists rowq.internal_archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_archive(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_archived int
)
sql security definer
modifies sql data
begin
-- routine   internal_archive
-- purpose   Move finished messages to the archive, batch by batch, until p_limit is passed.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; message rows, tried only; new archive rows; as
--           internal_cut_ties
    declare v_after, v_finish_id bigint;
    declare v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_messages, v_free longtext;
    declare v_there int;
    set p_archived = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -3;

    batches: while p_archived < p_limit do
        -- Find the row without locks, then lock it by its whole key, so that no gap is locked.
        set v_finish_id = null;
        select f.finish_id, f.state into v_finish_id, v_state
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id > v_after
        order by f.part_id, f.finish_id
        limit 1;
        if v_finish_id is null then
            leave batches;
        end if;
        set v_after = v_finish_id, v_messages = null;
        select f.messages, f.finished_at, f.state into v_messages, v_finished_at, v_state
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id = v_finish_id
        for update skip locked;
        if v_messages is null then
            iterate batches;
        end if;

        -- Leave a batch alone while a producer is adding a message that waits for one of it.
        select json_arrayagg(json_array(h.message_id, null, null, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        if coalesce(json_length(v_free), 0) < json_length(v_messages) then
            select count(*) into v_there
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
            if v_there > coalesce(json_length(v_free), 0) then
                iterate batches;
            end if;
        end if;

        insert into rowq.archive (
            part_id, finished_at, message_id, lane, attempt, enqueued_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key
        )
        select p_part_id, v_finished_at, j.message_id, j.lane, j.attempt, m.enqueued_at, v_state,
               m.message_type, m.dedup_key, m.headers, m.body, m.body_binary, m.group_key
        from json_table(
            v_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete m
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete f
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id = v_finish_id;
        set p_archived = p_archived + json_length(v_messages);
        -- The end of a message did not see what its producer had not committed then.
        if json_contains(json_extract(v_free, '$[*][3]'), '1') then
            call rowq.internal_cut_ties(p_part_id, v_free, p_owns_transaction);
        end if;
    end while;
end//
delimiter ;

-- [file internal/as_front.sql]
drop procedure if exists rowq.internal_as_front;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_as_front(p_messages longtext, p_spent int, out p_front longtext)
sql security definer
modifies sql data
begin
-- routine   internal_as_front
-- purpose   Prepare messages for the front of their priority, with p_spent attempts fewer.
-- promise   P09
-- differs   no such helper elsewhere: other engines change arrays in place
    select json_arrayagg(json_array(j.message_id, j.lane div 2 * 2, j.attempt - p_spent))
    into p_front
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;

-- [file internal/await_predecessor.sql]
drop procedure if exists rowq.internal_await_predecessor;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_await_predecessor(
    p_part_id int,
    p_message_id bigint,
    p_predecessor_ids longtext,
    p_on_dead varchar(20),
    p_is_fresh boolean,
    p_owns_transaction boolean,
    out p_state varchar(20),
    out p_predecessor_id bigint,
    out p_rest_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the first of these, newest first, that has not ended: waiting, free, failed, or unsure where others are at work. p_is_fresh says that a message that is not seen has ended.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row; new recheck rows
    declare v_count int default json_length(p_predecessor_ids);
    declare v_place int default 0;
    declare v_next int;
    declare v_shown_id, v_locked_id, v_after, v_ended_id bigint;
    declare v_has_successors boolean;
    set p_state = null, p_rest_ids = null;

    looks: while p_state is null do
        set v_next = null, p_predecessor_id = null, v_locked_id = null, v_ended_id = null;
        select j.place, j.message_id, m.message_id, m.has_successors
        into v_next, p_predecessor_id, v_shown_id, v_has_successors
        from json_table(
            p_predecessor_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) j
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and m.part_id = p_part_id
        where j.place > v_place
          and (m.message_id is not null or not p_is_fresh)
        limit 1;
        if v_next is null then
            set p_state = 'free';
            leave looks;
        end if;
        set v_place = v_next;
        if v_shown_id is null then
            -- It has ended, or is newer than the snapshot. A lock on a key that is not there would
            -- cover the gap where new messages go.
            set p_state = 'unsure';
            leave looks;
        end if;

        -- Hold the row to the end of the transaction: whoever ends the predecessor waits for this
        -- one, or leaves a note to look again. This one waits for nobody.
        if v_has_successors then
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id
            /*!80000 for share skip locked */ /*M!100600 lock in share mode skip locked */;
        else
            select m.message_id, m.has_successors into v_locked_id, v_has_successors
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id
            for update skip locked;
        end if;
        if v_locked_id is null and p_is_fresh then
            -- It is in others' hands, or has ended meanwhile.
            select m.message_id, 'unsure' into v_locked_id, p_state
            from rowq.message m force index (primary)
            where m.message_id = p_predecessor_id
              and m.part_id = p_part_id;
            iterate looks;
        elseif v_locked_id is null then
            set p_state = 'unsure';
            leave looks;
        end if;

        -- The archive keeps the message row for a while.
        select greatest(l.floor - 1, 0) into v_after
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane = -3;
        select f.finish_id into v_ended_id
        from rowq.finished f force index (primary)
        straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) x
        where f.part_id = p_part_id
          and f.finish_id > v_after
          and x.message_id = p_predecessor_id
        limit 1;
        if v_ended_id is null and p_owns_transaction and p_on_dead in ('continue', 'fail') then
            select d.message_id into v_ended_id
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and d.message_id = p_predecessor_id;
            if v_ended_id is not null and p_on_dead = 'fail' then
                set p_state = 'failed';
                leave looks;
            end if;
        end if;
        if v_ended_id is not null then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            select json_arrayagg(h.message_id) into p_predecessor_ids
            from (
                select j.message_id
                from json_table(
                    p_predecessor_ids,
                    '$[*]' columns (place for ordinality, message_id bigint path '$')
                ) j
                left join (
                    select distinct x.message_id
                    from rowq.finished f force index (primary)
                    straight_join json_table(
                        f.messages, '$[*]' columns (message_id bigint path '$[0]')
                    ) x
                    where f.part_id = p_part_id
                      and f.finish_id > v_after
                ) e on e.message_id = j.message_id
                where j.place > v_place
                  and e.message_id is null
                order by j.place
                limit 1000000
            ) h;
            set v_place = 0, v_count = coalesce(json_length(p_predecessor_ids), 0);
            iterate looks;
        end if;

        if v_has_successors is null then
            update rowq.message m force index (primary)
            set m.has_successors = true
            where m.message_id = p_predecessor_id;
        end if;
        insert ignore into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, p_predecessor_id, p_message_id);
        if not p_owns_transaction and p_on_dead in ('continue', 'fail') then
            -- An old snapshot does not show whether the predecessor is dead.
            call rowq.internal_recheck_later(
                p_part_id, null, json_array(p_predecessor_id + 0), true
            );
        end if;
        set p_state = 'waiting';
    end while;

    -- What is left of a list are its last members, and its end.
    if p_state = 'unsure' then
        set p_predecessor_id = null, v_place = v_place - 1;
    end if;
    if p_state in ('waiting', 'unsure') and v_place < v_count then
        set p_rest_ids = if(
            v_place = 0, p_predecessor_ids,
            concat('[', substring_index(p_predecessor_ids, ',', v_place - v_count))
        );
    end if;
end//
delimiter ;

-- [file internal/back_off.sql]
drop procedure if exists rowq.internal_back_off;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_back_off(
    p_part_id int,
    p_messages longtext,
    p_delay_seconds double,
    out p_delayed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_back_off
-- purpose   Compute when failed messages are due again: [message_id, lane, attempt, due_at in microseconds].
-- promise   P10
    declare v_base, v_factor, v_cap, v_jitter double;
    declare v_now bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    select q.backoff_base_seconds, q.backoff_factor, q.backoff_cap_seconds, q.backoff_jitter
    into v_base, v_factor, v_cap, v_jitter
    from rowq.queue q
    where q.part_id = p_part_id;

    select json_arrayagg(json_array(
               j.message_id, j.lane div 2 * 2 + 1, j.attempt,
               v_now + cast(1000000 * coalesce(
                   p_delay_seconds,
                   least(v_cap, v_base * pow(v_factor, least(j.attempt - 1, 60)))
                   * (1 - v_jitter * rand())
               ) as signed)
           ))
    into p_delayed
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
end//
delimiter ;

-- [file internal/batch_predecessors.sql]
drop procedure if exists rowq.internal_batch_predecessors;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_batch_predecessors(
    p_place int,
    p_stored longtext,
    p_positions longtext,
    inout p_predecessor_ids longtext,
    out p_own_id bigint,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_batch_predecessors
-- purpose   Add to a message's predecessors those that it names by their places in the batch. p_stored is a row of [1 if it is new and has not failed, message_id], 20 digits each, of the messages before it; p_own_id is the newest such one.
-- promise   P15
-- differs   part of internal_block_batch on PostgreSQL
    declare v_is_good boolean;
    declare v_low, v_high decimal(20);
    declare v_ids longtext;
    set p_own_id = null, p_fault = null;

    call rowq.internal_is_id_list(p_positions, v_is_good);
    if v_is_good then
        select min(j.place), max(j.place) into v_low, v_high
        from json_table(p_positions, '$[*]' columns (place decimal(20) path '$')) j;
    end if;
    if not v_is_good or v_low < 1 or v_high >= p_place then
        set p_fault =
            'predecessor_positions must be a flat list of places before the message''s own';
    elseif v_low is not null then
        select json_arrayagg(cast(substring(h.entry, 2) as signed)),
               max(if(left(h.entry, 1) = '1', cast(substring(h.entry, 2) as signed), null))
        into v_ids, p_own_id
        from (
            select substring(p_stored, (j.place - 1) * 20 + 1, 20) as entry
            from json_table(p_positions, '$[*]' columns (place int path '$')) j
            limit 1000000
        ) h;
        set p_predecessor_ids = json_merge_preserve(coalesce(p_predecessor_ids, '[]'), v_ids);
    end if;
end//
delimiter ;

-- [file internal/begin_work.sql]
drop procedure if exists rowq.internal_begin_work;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_begin_work(out p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- routine   internal_begin_work
-- purpose   Open a read committed transaction, or a savepoint in the one that the caller has.
-- promise   P15 P17
-- differs   only engines whose procedures open transactions need it
    declare v_moment double default @@timestamp;
    -- Where a transaction is open, "set transaction" fails with 1568 and so finds it, but "start
    -- transaction" would commit it.
    declare continue handler for 1568 set p_owns_transaction = false;

    /*!80000
    -- On MySQL only the next insert takes insert_id away again; set to 0, it is the number 0.
    -- Refuse it before a transaction is opened that nobody would end.
    if @@insert_id <> 0 then
        call rowq.internal_refuse(
            'insert_id is set in this session, and MySQL cannot unset it: connect again'
        );
    end if;
    */

    -- With autocommit off, the transaction belongs to the caller and has the isolation level of the
    -- session.
    set p_owns_transaction = @@autocommit;
    if p_owns_transaction then
        set transaction isolation level read committed;
    end if;

    -- Reading these variables costs less than setting them, and few sessions need that. A statement
    -- that sql_safe_updates refuses is left to internal_roll_back. If @@timestamp does not move on,
    -- the caller has set it.
    if /*M!100600 @@insert_id <> 0 or */
       @@timestamp = v_moment
       or not @@unique_checks
       or not @@sql_big_selects
       or @@sort_buffer_size < 262144
       /*M!100600 or @@group_concat_max_len < 1048576 */
       /*M!100600 or @@tmp_disk_table_size < 1073741824 */
       /*M!100600 or @@skip_replication */
       /*M!110602 or (@@innodb_snapshot_isolation and not p_owns_transaction) */
    then
        call rowq.internal_pin_session(v_moment);
    end if;

    if p_owns_transaction then
        start transaction;
    else
        savepoint rowq_call;
    end if;
end//
delimiter ;

-- [file internal/block.sql]
drop procedure if exists rowq.internal_block;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_block(
    p_part_id int,
    p_message_id bigint,
    p_place int,
    p_lane smallint,
    p_due_at datetime(6),
    p_group_key varbinary(800),
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_dead varchar(20),
    p_owns_transaction boolean,
    out p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors: waiting, unsure, failed with one, or free where all have ended. The caller frees the dedup key of one that has failed. p_own_id is the newest of them that this call has stored, p_place the message's place in a batch, or 0.
-- promise   P15 P25 P26 P27 P32
-- locks     as internal_await_predecessor; new blocked, dead and result rows
-- errors    RQ711
    declare v_ids, v_rest_ids longtext;
    declare v_newest_id, v_predecessor_id bigint;

    -- A number that is too big for an id is read as null.
    select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_newest_id
    from (
        select distinct coalesce(a.message_id, 9223372036854775807) as message_id
        from json_table(p_predecessor_ids, '$[*]' columns (message_id bigint path '$')) a
        order by coalesce(a.message_id, 9223372036854775807) desc
        limit 1000000
    ) h
    where h.message_id > 0;
    if v_newest_id >= p_message_id then
        call rowq.internal_refuse(
            concat(
                'predecessor_ids must name messages that are there',
                if(p_place > 0, concat(' (message ', p_place, ')'), '')
            )
        );
    end if;

    set p_state = 'free';
    if v_newest_id = p_own_id then
        -- Nobody else sees this predecessor yet.
        update rowq.message m force index (primary)
        set m.has_successors = true
        where m.message_id = p_own_id;
        insert into rowq.successor (part_id, predecessor_id, message_id)
        values (p_part_id, p_own_id, p_message_id);
        set p_state = 'waiting', v_predecessor_id = p_own_id,
            v_rest_ids = json_remove(v_ids, '$[0]');
        set v_rest_ids = nullif(v_rest_ids, '[]');
    elseif v_ids is not null then
        call rowq.internal_await_predecessor(
            p_part_id, p_message_id, v_ids, p_on_dead, p_owns_transaction, p_owns_transaction,
            p_state, v_predecessor_id, v_rest_ids
        );
    end if;

    if p_state = 'failed' then
        insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
        values (
            p_part_id, p_message_id, p_lane, 0, utc_timestamp(6),
            concat('predecessor ', v_predecessor_id, ' is dead')
        );
        call rowq.internal_push_result(
            p_part_id, json_array(json_array(p_message_id + 0)), 'dead', null, null, null
        );
    elseif p_state <> 'free' then
        insert into rowq.blocked (
            part_id, message_id, lane, predecessor_id, due_at, on_dead, group_key, rest_ids
        )
        values (
            p_part_id, p_message_id, p_lane, v_predecessor_id, p_due_at, p_on_dead, p_group_key,
            v_rest_ids
        );
        if p_state = 'unsure' then
            call rowq.internal_recheck_later(
                p_part_id, json_array(p_message_id + 0), null, false
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/body_fault.sql]
drop procedure if exists rowq.internal_body_fault;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_body_fault(
    p_body longtext,
    p_body_binary longblob,
    p_headers longtext,
    p_max_body_length int,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_body_fault
-- purpose   Return what is wrong with the length of a body; null means nothing.
-- promise   P15
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_length bigint default coalesce(char_length(p_body), length(p_body_binary));
    declare v_limit bigint default cast(@@global.max_allowed_packet as signed) - 20000;

    -- Count as internal_messages_json does. 20000 bytes are enough for everything beside body and
    -- headers, and for an error that is noted later.
    set p_fault = case
        when v_length > p_max_body_length
            then concat(
                'body is ', v_length, ' long, and the queue takes ', p_max_body_length,
                ': max_body_length'
            )
        when coalesce(length(json_quote(p_body)), length(p_body) * 6, v_length * 1.352, 0)
            + coalesce(length(json_extract(p_headers, '$')), 0) > v_limit
            then concat('as JSON it is longer than max_allowed_packet less 20000, ', v_limit)
    end;
end//
delimiter ;

-- [file internal/bound_gap.sql]
drop procedure if exists rowq.internal_bound_gap;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_bound_gap(p_part_id int, inout p_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_bound_gap
-- purpose   Let the caller's transaction lock a claim that may be gone without stopping new claims; p_claim_id is null afterwards if no claim has had that number yet.
-- promise   P08 P17
-- locks     a new claim row that is deleted at once
-- commits   never; moves the savepoint of internal_begin_work
-- differs   only engines that lock gaps need it
    declare v_claim_id bigint;
    -- A claim that the snapshot shows keeps its place in the index even if it is gone by now, so a
    -- lock on it covers no gap where new claims go.
    select c.claim_id into v_claim_id
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = p_claim_id;

    if v_claim_id is null then
        -- The claim is newer than the snapshot, or gone. A lock on a key that is gone covers the
        -- gap up to the next row, which is where new claims go. A row that this transaction inserts
        -- and deletes ends the gap before them.
        set v_claim_id = uuid_short() & 9007199254740991;
        insert into rowq.claim (part_id, claim_id, lease_until, messages)
        values (p_part_id, v_claim_id, utc_timestamp(6) + interval 1 day, '[]');
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id;
        -- Move the savepoint behind the row. If a refused call removed the row, the gap would reach
        -- up to the next one.
        savepoint rowq_call;
        if p_claim_id >= v_claim_id then
            -- No claim has had this number yet, because numbers only grow. A lock on it would cover
            -- the gap where new claims go.
            set p_claim_id = null;
        end if;
    end if;
end//
delimiter ;

-- [file internal/bound_queues.sql]
drop procedure if exists rowq.internal_bound_queues;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_bound_queues(p_messages longtext, out p_queues longtext)
sql security definer
modifies sql data
begin
-- routine   internal_bound_queues
-- purpose   Return the queues that are bound to the topics of messages, in the order of their names, and keep them from being dropped: [part_id, name in hex, max_body_length, places of the messages].
-- promise   P35
-- locks     the rows of their parts, shared; waits for a drop that is under way
    declare v_part_id, v_last_part_id, v_there, v_max_body_length, v_place int;
    declare v_queue_name varbinary(400);
    declare v_chunk longtext default '';
    declare v_is_end boolean default false;
    -- A pattern matches if the words before its first wildcard are the first ones of the topic, and
    -- if as many words as it has are like its own. No "%" swallows a dot there, because both sides
    -- have the same number of them. An array of as many zeros as a topic has heads counts these.
    -- No column is JSON or a long text, which would put the temporary tables on disk.
    declare each_match cursor for
        select q.part_id, q.queue_name, q.max_body_length, h.place
        from (
            select distinct b.part_id, t.place
            from json_table(
                p_messages,
                '$[*]' columns (place for ordinality, topic varchar(200) path '$.topic')
            ) t
            straight_join json_table(
                concat(
                    '[0,0',
                    repeat(',0', char_length(t.topic) - char_length(replace(t.topic, '.', ''))),
                    ']'
                ),
                '$[*]' columns (place for ordinality)
            ) n
            straight_join rowq.topic_binding b force index (topic_binding_head_ix)
                on b.literal_head = cast(substring_index(t.topic, '.', n.place - 1) as binary)
            where (
                b.has_rest
                or b.word_count
                    = char_length(t.topic) - char_length(replace(t.topic, '.', '')) + 1
            )
              and (
                  b.like_pattern is null
                  or cast(substring_index(t.topic, '.', b.word_count) as binary)
                      like b.like_pattern escape '!'
              )
        ) h
        straight_join rowq.queue q force index (primary) on q.part_id = h.part_id
        order by q.queue_name, h.place;
    declare continue handler for not found set v_is_end = true;
    set p_queues = '';

    open each_match;
    matches: loop
        fetch each_match into v_part_id, v_queue_name, v_max_body_length, v_place;
        if v_is_end then
            leave matches;
        end if;
        if v_last_part_id is null or v_part_id <> v_last_part_id then
            -- Leave a queue out that was dropped since the look.
            set v_last_part_id = v_part_id, v_there = null;
            select p.part_id into v_there
            from rowq.part p
            where p.part_id = v_part_id
            lock in share mode;
            set v_is_end = false;
            if v_there is not null then
                set v_chunk = concat(
                    v_chunk, if(p_queues = '' and v_chunk = '', '[', ']],'),
                    '[', v_part_id, ',"', hex(v_queue_name), '",', v_max_body_length, ',[', v_place
                );
            end if;
        elseif v_there is not null then
            set v_chunk = concat(v_chunk, ',', v_place);
        end if;
        -- Build the text in pieces, because a long one is copied each time something is added.
        if length(v_chunk) > 5000 then
            set p_queues = concat(p_queues, v_chunk), v_chunk = '';
        end if;
    end loop;
    close each_match;
    set p_queues = concat(p_queues, v_chunk);
    set p_queues = if(p_queues = '', '[]', concat(p_queues, ']]]'));
end//
delimiter ;

-- [file internal/check_batch_size.sql]
drop procedure if exists rowq.internal_check_batch_size;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_batch_size(p_batch_size int)
sql security definer
modifies sql data
begin
-- routine   internal_check_batch_size
-- purpose   Refuse a housekeeping batch_size outside 1 to 10000; null passes and means the default.
-- promise   P15
-- errors    RQ711
    call rowq.internal_check_range('batch_size', p_batch_size, 1, 10000);
end//
delimiter ;

-- [file internal/check_ids.sql]
drop procedure if exists rowq.internal_check_ids;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_ids(p_message_ids longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_ids
-- purpose   Refuse a list of messages that is no JSON array of ids, or too long; null passes.
-- promise   P15
-- errors    RQ711
    declare v_is_good boolean;
    if p_message_ids is not null then
        call rowq.internal_is_id_list(p_message_ids, v_is_good);
        if not v_is_good then
            call rowq.internal_refuse(
                'message_ids must be a JSON array of at most 10000 ids, none of them null'
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/check_name.sql]
drop procedure if exists rowq.internal_check_name;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_name(p_name varchar(64), p_value longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_name
-- purpose   Refuse a bad name of a queue or a schedule; p_name is that of the parameter.
-- promise   P15
-- errors    RQ711
    if p_value is null
       or char_length(p_value) not between 1 and 100
       or p_value regexp '[[:cntrl:]]' then
        call rowq.internal_refuse(
            concat(p_name, ' must be 1 to 100 characters, none of them control')
        );
    end if;
    call rowq.internal_check_text(p_name, p_value);
end//
delimiter ;

-- [file internal/check_range.sql]
drop procedure if exists rowq.internal_check_range;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_range(
    p_name longtext,
    p_value double,
    p_low double,
    p_high double
)
sql security definer
modifies sql data
begin
-- routine   internal_check_range
-- purpose   Refuse a number outside its range; null passes.
-- promise   P15
-- errors    RQ711
    if p_value not between p_low and p_high then
        call rowq.internal_refuse(
            concat(p_name, ' must be between ', p_low, ' and ', p_high, ', got ', p_value)
        );
    end if;
end//
delimiter ;

-- [file internal/check_results.sql]
drop procedure if exists rowq.internal_check_results;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_results(
    p_results longtext,
    p_count int,
    p_result_seconds double
)
sql security definer
modifies sql data
begin
-- routine   internal_check_results
-- purpose   Refuse results that are not p_count good ones, or that the queue does not keep.
-- promise   P15
-- errors    RQ711
    declare c_longest int default 1048576;
    declare v_fault varchar(120);
    declare v_place int default 0;
    declare v_result longtext;
    declare v_length bigint;

    if p_result_seconds = 0 then
        call rowq.internal_refuse('the queue keeps no results: its result_seconds is 0');
    end if;
    if locate(x'ED', cast(p_results as binary)) > 0 then
        call rowq.internal_check_text('results', p_results);
    end if;
    call rowq.internal_json_fault('results', p_results, 'ARRAY', 21, null, v_fault);
    if v_fault is null and json_length(p_results) <> p_count then
        set v_fault = concat(
            'results are ', json_length(p_results), ', and message_ids are ', p_count
        );
    end if;
    while v_fault is null and v_place is not null and char_length(p_results) > c_longest do
        set v_result = null;
        select j.place, j.result into v_place, v_result
        from json_table(
            p_results, '$[*]' columns (place for ordinality, result json path '$')
        ) j
        where j.place > v_place
          and char_length(j.result) > c_longest
        limit 1;
        if v_result is null then
            set v_place = null;
        else
            call rowq.internal_json_length(v_result, v_length);
            if v_length > c_longest then
                set v_fault = concat('a result is longer than ', c_longest, ' characters');
            end if;
        end if;
    end while;
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;
end//
delimiter ;

-- [file internal/check_schedule.sql]
drop procedure if exists rowq.internal_check_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_schedule(
    p_part_id int,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    out p_next_run_at datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_check_schedule
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come; return its first tick.
-- promise   P15
-- errors    RQ711
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_first datetime(6) default '2000-01-01';
    declare v_last datetime(6) default '2100-01-01';
    declare v_fault varchar(120);
    declare v_bits varchar(136);
    declare v_merged longtext;
    declare v_max_body_length int;

    call rowq.internal_check_name('schedule_name', p_schedule_name);
    set v_fault = case
        when (p_cron is null) = (p_interval_seconds is null)
            then 'a schedule has either cron or interval_seconds'
        when cast(p_missed as binary) not in ('skip', 'once', 'all')
            then concat('missed must be skip, once or all, got ', left(p_missed, 40))
        when p_starts_at not between v_first and v_last
             or p_ends_at not between v_first and v_last
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    if v_fault is null then
        select q.max_body_length into v_max_body_length
        from rowq.queue q
        where q.part_id = p_part_id;
        call rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, null, null, null,
            p_max_attempts, p_group_key, null, null, null, v_max_body_length, v_fault
        );
    end if;
    if v_fault is null then
        call rowq.internal_tick_headers(p_schedule_name, p_headers, v_now, v_merged);
        call rowq.internal_json_fault('headers', v_merged, 'OBJECT', 20, 65536, v_fault);
    end if;
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;

    call rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    call rowq.internal_check_time_zone(p_time_zone);
    if p_cron is not null then
        call rowq.internal_parse_cron(p_cron, v_bits);
    end if;
    call rowq.internal_next_tick(
        v_bits, p_interval_seconds, p_time_zone, p_starts_at, p_ends_at, v_now, p_next_run_at
    );
    if p_next_run_at is null then
        call rowq.internal_refuse(
            'the schedule has no tick within ten years or before ends_at'
        );
    end if;
end//
delimiter ;

-- [file internal/check_settings.sql]
drop procedure if exists rowq.internal_check_settings;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_settings(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
begin
-- routine   internal_check_settings
-- purpose   Refuse a bad queue name or a setting out of range; null passes for settings.
-- promise   P15
-- errors    RQ711
    call rowq.internal_check_name('queue_name', p_queue_name);
    call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
    call rowq.internal_check_range('max_attempts', p_max_attempts, 1, 10000);
    call rowq.internal_check_range('backoff_base_seconds', p_backoff_base_seconds, 0, 86400);
    call rowq.internal_check_range('backoff_factor', p_backoff_factor, 1, 10);
    call rowq.internal_check_range('backoff_cap_seconds', p_backoff_cap_seconds, 0, 31536000);
    call rowq.internal_check_range('backoff_jitter', p_backoff_jitter, 0, 1);
    call rowq.internal_check_range('archive_days', p_archive_days, 0, 36500);
    call rowq.internal_check_range('max_body_length', p_max_body_length, 1, 33554432);
    call rowq.internal_check_range('group_limit', p_group_limit, 1, 100);
    call rowq.internal_check_range('group_pause_seconds', p_group_pause_seconds, 0, 86400);
    if cast(p_group_after_dead as binary) not in ('continue', 'hold') then
        call rowq.internal_refuse(
            concat(
                'group_after_dead must be continue or hold, got ', left(p_group_after_dead, 40)
            )
        );
    end if;
    call rowq.internal_check_range('max_leased', p_max_leased, 0, 100000);
    call rowq.internal_check_range('rate_limit', p_rate_limit, 0, 100000);
    call rowq.internal_check_range('rate_seconds', p_rate_seconds, 0.1, 86400);
    call rowq.internal_check_range('result_seconds', p_result_seconds, 0, 31536000);
    call rowq.internal_check_range('history_days', p_history_days, 0, 36500);
end//
delimiter ;

-- [file internal/check_text.sql]
drop procedure if exists rowq.internal_check_text;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_text(p_name longtext, p_text longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_text
-- purpose   Refuse a text that no client can read; call it only for a text with a byte ED.
-- promise   P15 P20
-- errors    RQ711
-- differs   elsewhere the engine refuses it
    -- MariaDB accepts half of a surrogate pair (ED A0 80 to ED BF BF) as a character of UTF-8. On
    -- the way to UTF-16 and back it becomes a question mark, so that the texts differ.
    if convert(convert(p_text using utf16) using utf8mb4) <> p_text then
        call rowq.internal_refuse(concat(p_name, ' has half of a surrogate pair, no character'));
    end if;
end//
delimiter ;

-- [file internal/check_time_zone.sql]
drop procedure if exists rowq.internal_check_time_zone;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_time_zone(p_time_zone longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
-- differs   upper and lower case are the same, and the server's tables of time zones may be empty
    declare v_local, v_known datetime(6);

    if cast(p_time_zone as binary) <> 'UTC' then
        -- SYSTEM and offsets are names of the server's, but not of a time zone.
        if p_time_zone regexp '\\A[A-Za-z][A-Za-z0-9_+/-]{0,63}\\z'
           and lower(p_time_zone) <> 'system' then
            set v_local = convert_tz('2020-01-01', '+00:00', p_time_zone);
        end if;
        -- The names in right/ count leap seconds, so that no cron expression names their minutes.
        if coalesce(second(v_local) > 0, true) then
            set v_known = convert_tz('2020-01-01', '+00:00', 'Europe/Berlin');
            call rowq.internal_refuse(
                if(
                    v_known is null,
                    concat(
                        'time_zone ', left(p_time_zone, 24), ': load the server''s time zone ',
                        'tables (mysql_tzinfo_to_sql), or use UTC'
                    ),
                    concat(
                        'time_zone must be a name such as Europe/Berlin that the server knows, ',
                        'got ', left(p_time_zone, 100)
                    )
                )
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/check_unbound.sql]
drop procedure if exists rowq.internal_check_unbound;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_check_unbound(p_messages longtext, p_queues longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_unbound
-- purpose   Refuse the messages of publish_batch where one is bad that no queue is bound to, as internal_store_batch does with the others.
-- promise   P15 P20
-- errors    RQ711
    declare v_place int;
    declare v_message, v_body, v_message_type, v_headers, v_dedup_key, v_group_key longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_run_at datetime(6);
    declare v_fault varchar(120);
    declare v_is_end boolean default false;
    declare each_message cursor for
        select j.place, cast(j.message as char) as message
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message json path '$')
        ) j
        left join (
            select distinct q.place
            from json_table(
                p_queues, '$[*]' columns (nested path '$[3][*]' columns (place int path '$'))
            ) q
        ) bound on bound.place = j.place
        where bound.place is null;
    declare continue handler for not found set v_is_end = true;

    open each_message;
    messages: loop
        fetch each_message into v_place, v_message;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_parse_message(
            v_message, true, 33554432, v_body, v_body_binary, v_message_type, v_headers,
            v_priority, v_delay_seconds, v_run_at, v_dedup_key, v_max_attempts, v_group_key,
            v_predecessor_ids, v_positions, v_on_predecessor_dead, v_expire_seconds, v_fault
        );
        if v_fault is not null then
            call rowq.internal_refuse(concat(left(v_fault, 80), ' (message ', v_place, ')'));
        end if;
        set v_is_end = false;
    end loop;
    close each_message;
end//
delimiter ;

-- [file internal/claims_of.sql]
drop procedure if exists rowq.internal_claims_of;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_claims_of(
    p_part_id int,
    p_message_ids longtext,
    out p_claim_ids longtext,
    out p_held_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_claims_of
-- purpose   Find the claims that hold any of these messages, and which messages these are; null where there is none.
-- differs   PostgreSQL compares arrays
    -- An array of as many entries stands for a range.
    select json_arrayagg(h.claim_id), json_arrayagg(h.message_id) into p_claim_ids, p_held_ids
    from (
        select c.claim_id, w.message_id
        from rowq.claim c force index (primary)
        straight_join json_table(
            coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
            '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = if(c.messages is null, c.first_id + j.place - 1, j.message_id)
        where c.part_id = p_part_id
          and c.claim_id > 0
    ) h;
end//
delimiter ;

-- [file internal/close_fronts.sql]
drop procedure if exists rowq.internal_close_fronts;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_close_fronts(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_close_fronts
-- purpose   Close the front lanes that are empty and were opened long enough ago, so that dequeue need not look there.
-- promise   P13
-- locks     rows of lanes, passing over locked ones
-- commits   its own transaction where the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane, v_next, v_locked smallint;
    declare v_floor, v_first bigint;

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
            set v_lane = -1;

            -- A message that is put into a lane while it is closed waits for the next maintain. So
            -- leave that to a short transaction, and not to the caller's.
            lanes: while v_owns_transaction do
                set v_next = null;
                select l.lane, l.floor into v_next, v_floor
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane > v_lane
                  and l.lane mod 2 = 0
                  and l.is_open
                  and l.sweep_at <= utc_timestamp(6)
                order by l.part_id, l.lane
                limit 1;
                if v_next is null then
                    leave lanes;
                end if;
                set v_lane = v_next, v_locked = null;

                select l.lane into v_locked
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = v_lane
                for update skip locked;
                call rowq.internal_first_key(p_part_id, v_lane, v_floor, v_first);
                if v_locked is not null and v_first is null then
                    -- The floor moves too, because nobody moves that of a closed lane.
                    update rowq.lane l
                    set l.is_open = false,
                        l.floor = greatest(
                            l.floor,
                            timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                        )
                    where l.part_id = p_part_id
                      and l.lane = v_lane;
                end if;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

-- [file internal/commit_work.sql]
drop procedure if exists rowq.internal_commit_work;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_commit_work(p_owns_transaction boolean)
sql security definer
modifies sql data
begin
-- routine   internal_commit_work
-- purpose   End what internal_begin_work opened.
-- promise   P17
-- commits   the transaction that internal_begin_work opened, never the caller's
-- differs   only engines whose procedures open transactions need it
    if p_owns_transaction then
        commit and no chain no release;
    else
        release savepoint rowq_call;
    end if;
end//
delimiter ;

-- [file internal/count_messages.sql]
drop procedure if exists rowq.internal_count_messages;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_count_messages(
    p_part_id int,
    p_limit int,
    out p_ready bigint,
    out p_delayed bigint,
    out p_leased bigint,
    out p_dead bigint,
    out p_blocked bigint
)
sql security definer
reads sql data
begin
-- routine   internal_count_messages
-- purpose   Count the messages of a queue by where they are, each up to p_limit.
-- promise   P13
-- differs   PostgreSQL counts in queue_stats itself
    -- Count from the first row and not from the floor, so that messages that were committed late
    -- count too.
    select count(*) into p_ready
    from (
        select r.attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.message_id > 0
        limit p_limit
    ) h;
    select count(*) into p_delayed
    from (
        select d.attempt
        from rowq.delayed d force index (primary)
        where d.part_id = p_part_id
          and d.message_id > 0
        limit p_limit
    ) h;
    select least(
               coalesce(sum(coalesce(json_length(h.messages), h.last_id - h.first_id + 1)), 0),
               p_limit
           )
    into p_leased
    from (
        select c.messages, c.first_id, c.last_id
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id > 0
        limit p_limit
    ) h;
    select count(*) into p_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit p_limit
    ) h;
    select count(*) into p_blocked
    from (
        (
            select g.lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.message_id > 0
            limit p_limit
        )
        union all
        (
            select b.lane
            from rowq.blocked b force index (primary)
            where b.part_id = p_part_id
            limit p_limit
        )
        limit p_limit
    ) h;
end//
delimiter ;

-- [file internal/cut_ties.sql]
drop procedure if exists rowq.internal_cut_ties;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_cut_ties(
    p_part_id int,
    p_ties longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_cut_ties
-- purpose   Pass on the tokens of messages that have ended, and let those go on that have waited for them; internal_read_ties has returned what they are.
-- promise   P22 P26
-- locks     as internal_leave_groups and internal_free_successors
    declare v_message_id bigint;
    declare v_is_end boolean default false;
    declare each_awaited cursor for
        select j.message_id
        from json_table(
            p_ties,
            '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[3]')
        ) j
        where j.is_awaited
        order by j.message_id;
    declare continue handler for not found set v_is_end = true;

    call rowq.internal_leave_groups(p_part_id, p_ties, p_owns_transaction);
    open each_awaited;
    set v_is_end = false;
    awaited: loop
        fetch each_awaited into v_message_id;
        if v_is_end then
            leave awaited;
        end if;
        call rowq.internal_free_successors(p_part_id, v_message_id, p_owns_transaction);
        set v_is_end = false;
    end loop;
    close each_awaited;
end//
delimiter ;

-- [file internal/dedup_owner.sql]
drop procedure if exists rowq.internal_dedup_owner;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_dedup_owner(
    p_part_id int,
    p_dedup_key varbinary(800),
    p_is_there boolean,
    out p_message_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_dedup_owner
-- purpose   Return the unfinished message that has a dedup key, or null.
-- promise   P12
-- locks     the dedup row, shared
    set p_message_id = null;
    if not p_is_there then
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key;
    end if;
    if p_is_there or p_message_id is not null then
        -- Read again with a lock, because an old snapshot may show a row that is gone, or not yet
        -- show one that is there.
        set p_message_id = null;
        select d.message_id into p_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = p_part_id
          and d.dedup_key = p_dedup_key
        lock in share mode;
    end if;
end//
delimiter ;

-- [file internal/delete_queue.sql]
drop procedure if exists rowq.internal_delete_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_delete_queue(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_delete_queue
-- purpose   Delete everything that belongs to a queue, and the queue.
-- promise   P15
-- locks     all rows of the queue
-- differs   no such helper elsewhere: part of drop_queue
    -- A dequeue and a complete hold no lock on the part. They move messages from blocked to all
    -- other places, from delayed to grouped or ready, from grouped to ready, and from ready to
    -- claim or dead, so look in this order: a look waits for a call that has taken a row there, and
    -- the looks after it see where the message went.
    delete m
    from rowq.blocked b force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = b.message_id
    where b.part_id = p_part_id;
    delete m
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    delete m
    from rowq.grouped g force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = g.message_id
    where g.part_id = p_part_id;
    delete m
    from rowq.ready r force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = r.message_id
    where r.part_id = p_part_id;
    delete m
    from rowq.dead d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = p_part_id;
    -- An array of as many empty ones stands for the messages of a range.
    delete m
    from rowq.claim c force index (primary)
    straight_join json_table(
        coalesce(c.messages, concat('[[]', repeat(',[]', c.last_id - c.first_id), ']')),
        '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary)
        on m.message_id = coalesce(j.message_id, c.first_id + j.place - 1)
    where c.part_id = p_part_id;
    delete m
    from rowq.finished f force index (primary)
    straight_join json_table(f.messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where f.part_id = p_part_id;

    -- Name the index, because MariaDB 11 would read the whole of a table of which the queue has the
    -- most rows, and wait for those of other queues.
    delete r from rowq.ready r force index (primary) where r.part_id = p_part_id;
    delete d from rowq.delayed d force index (primary) where d.part_id = p_part_id;
    delete c from rowq.claim c force index (primary) where c.part_id = p_part_id;
    delete d from rowq.dead d force index (primary) where d.part_id = p_part_id;
    delete k from rowq.dedup k force index (primary) where k.part_id = p_part_id;
    delete b from rowq.blocked b force index (primary) where b.part_id = p_part_id;
    delete s from rowq.successor s force index (primary) where s.part_id = p_part_id;
    delete r from rowq.recheck r force index (primary) where r.part_id = p_part_id;
    delete g from rowq.grouped g force index (primary) where g.part_id = p_part_id;
    delete t from rowq.message_group t force index (primary) where t.part_id = p_part_id;
    delete s from rowq.started s force index (primary) where s.part_id = p_part_id;
    delete e from rowq.expiry e force index (primary) where e.part_id = p_part_id;
    delete f from rowq.finished f force index (primary) where f.part_id = p_part_id;
    delete s from rowq.schedule s force index (primary) where s.part_id = p_part_id;
    delete b from rowq.topic_binding b force index (primary) where b.part_id = p_part_id;
    delete r from rowq.result r force index (primary) where r.part_id = p_part_id;
    delete h from rowq.history h force index (primary) where h.part_id = p_part_id;
    delete from rowq.archive where part_id = p_part_id;
    delete l from rowq.lane l force index (primary) where l.part_id = p_part_id;
    delete from rowq.part where part_id = p_part_id;
    delete from rowq.queue where part_id = p_part_id;
end//
delimiter ;

-- [file internal/delete_ready.sql]
drop procedure if exists rowq.internal_delete_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_delete_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_delete_ready
-- purpose   Delete ready rows by their whole keys: an array of [message_id, lane, attempt, seq].
-- promise   P02
-- locks     ready rows
-- differs   no such helper elsewhere: other engines delete by an array
    delete r
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[3]'
        )
    ) j
    straight_join rowq.ready r force index (primary)
        on r.part_id = p_part_id
       and r.lane = j.lane
       and r.seq = j.seq
       and r.message_id = j.message_id;
end//
delimiter ;

-- [file internal/dequeue.sql]
drop procedure if exists rowq.internal_dequeue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_dequeue(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_is_json boolean,
    out p_claim_id bigint,
    out p_lease_until datetime(6),
    out p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_dequeue
-- purpose   Lease up to p_batch_size ready messages to one new claim, as rows or as one JSON array; nulls when there is none.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     where the queue has limits its gate; ready rows, passing over locked ones; the new
--           claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   two routines share it, as a procedure cannot read the result of another
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_lease_seconds, v_promoted, v_solved, v_room int;
    declare v_max_leased, v_rate_limit int;
    declare v_rate_seconds double;
    declare v_last_claim_id bigint;
    declare v_is_paused boolean;
    declare v_leased_at datetime(6);

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

            call rowq.internal_check_range('batch_size', p_batch_size, 1, 1000);
            call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
            if char_length(p_worker_name) > 200 then
                call rowq.internal_refuse('worker_name is longer than 200 characters');
            elseif locate(x'ED', cast(p_worker_name as binary)) > 0 then
                call rowq.internal_check_text('worker_name', p_worker_name);
            end if;

            set p_claim_id = null, p_messages = null, p_json = null, v_part_id = null,
                v_room = p_batch_size, v_last_claim_id = null;
            select q.part_id, q.lease_seconds, q.paused_at is not null, q.max_leased, q.rate_limit,
                   q.rate_seconds
            into v_part_id, v_lease_seconds, v_is_paused, v_max_leased, v_rate_limit, v_rate_seconds
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if v_is_paused then
                set v_room = 0;
            elseif v_max_leased + v_rate_limit > 0 then
                call rowq.internal_admit(
                    v_part_id, p_batch_size, v_max_leased, v_rate_limit, v_rate_seconds,
                    v_owns_transaction, v_room, v_last_claim_id
                );
            end if;
            if v_room > 0 then
                call rowq.internal_pop_ready(
                    v_part_id, v_room, v_owns_transaction, p_messages
                );
                if p_messages is null then
                    -- Nothing is ready: what has become due meanwhile need not wait for maintain,
                    -- nor what was left to be looked at again.
                    call rowq.internal_promote(
                        v_part_id, v_room, v_owns_transaction, v_promoted
                    );
                    call rowq.internal_recheck(
                        v_part_id, 10, v_owns_transaction, false, v_solved
                    );
                    if v_promoted + v_solved > 0 then
                        call rowq.internal_pop_ready(
                            v_part_id, v_room, v_owns_transaction, p_messages
                        );
                    end if;
                end if;
            end if;

            if p_messages is not null then
                set v_leased_at = utc_timestamp(6);
                set p_lease_until = v_leased_at
                    + interval coalesce(p_lease_seconds, v_lease_seconds) second;
                call rowq.internal_push_claim(
                    v_part_id, v_leased_at, p_lease_until, p_worker_name, p_messages, p_claim_id
                );
                if p_is_json then
                    call rowq.internal_trim_claim(
                        v_part_id, p_claim_id, p_lease_until, p_messages, p_json
                    );
                end if;
                if v_last_claim_id is not null and p_messages is not null then
                    call rowq.internal_note_start(
                        v_part_id, p_claim_id, v_last_claim_id, v_leased_at,
                        json_length(p_messages), v_rate_limit
                    );
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

-- [file internal/drop_days.sql]
drop procedure if exists rowq.internal_drop_days;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_drop_days(out p_partitions_dropped int)
sql security definer
modifies sql data
begin
-- routine   internal_drop_days
-- purpose   Drop partitions of the archive that are too old for every queue.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL drops them in the transaction of the caller
    declare v_keep_from varchar(20);
    declare v_name varchar(64);
    declare v_is_done boolean default true;
    set p_partitions_dropped = 0;

    select concat("'", date(utc_timestamp() - interval max(q.archive_days) day)) into v_keep_from
    from rowq.queue q;

    while v_is_done do
        set v_name = null;
        select p.partition_name into v_name
        from information_schema.partitions p
        where p.table_schema = 'rowq'
          and p.table_name = 'archive'
          and p.partition_description <> 'MAXVALUE'
          and left(p.partition_description, 11) <= v_keep_from
        order by p.partition_ordinal_position
        limit 1;
        set v_is_done = v_name is not null;
        if v_is_done then
            call rowq.internal_shape_archive(
                concat('alter table rowq.archive drop partition ', v_name), v_is_done
            );
            set p_partitions_dropped = p_partitions_dropped + v_is_done;
        end if;
    end while;
end//
delimiter ;

-- [file internal/end_awaited.sql]
drop procedure if exists rowq.internal_end_awaited;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_end_awaited(
    p_part_id int,
    p_messages longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_awaited
-- purpose   Delete those of these messages that are still there, because others wait for them, and let these go on.
-- promise   P26
-- locks     message rows; as internal_free_successors
-- differs   PostgreSQL learns by the delete itself who waits
    declare v_ties longtext;
    call rowq.internal_read_ties(p_messages, null, false, true, v_ties);
    delete m
    from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;

-- [file internal/end_cancelled.sql]
drop procedure if exists rowq.internal_end_cancelled;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_end_cancelled(
    p_part_id int,
    p_cancel_ids longtext,
    p_owns_transaction boolean,
    inout p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_end_cancelled
-- purpose   End those messages of a claim that were cancelled, and leave the others in p_messages; null where there is none.
-- promise   P34
-- locks     as internal_finish
    declare v_archive_days int;
    declare v_ended, v_rest longtext;

    select q.archive_days into v_archive_days
    from rowq.queue q
    where q.part_id = p_part_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_ended
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    straight_join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id;
    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_rest
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j
    left join (
        select distinct a.message_id
        from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) a
    ) w on w.message_id = j.message_id
    where w.message_id is null;
    call rowq.internal_finish(
        p_part_id, v_archive_days, true, v_ended, null, null, p_owns_transaction, 'cancelled'
    );
    set p_messages = v_rest;
end//
delimiter ;

-- [file internal/end_tied.sql]
drop procedure if exists rowq.internal_end_tied;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_end_tied(
    p_part_id int,
    p_is_archived boolean,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_keyless longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_end_tied
-- purpose   Cut the ties of finished messages, and delete those that are not archived; p_is_keyed, p_tokenless and p_keyless are those of internal_finish.
-- promise   P04 P12 P22 P26
-- locks     message rows; dedup rows, in key order; as internal_cut_ties
-- differs   PostgreSQL learns of ties by the delete itself
    declare v_message_id bigint;
    declare v_ties, v_freed longtext;
    declare v_keyed longtext default p_messages;

    if p_keyless is not null then
        -- Others may have the keys of these by now, and under the caller's repeatable read a look
        -- with a lock for a key that is not there would lock the gap around it.
        select json_arrayagg(json_array(j.message_id, null, null)) into v_keyed
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        left join (
            select distinct a.message_id
            from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
        ) f on f.message_id = j.message_id
        where f.message_id is null;
    end if;

    if p_is_archived then
        -- What waits for one of them and is not committed yet is left to internal_archive.
        call rowq.internal_read_ties(
            p_messages, p_tokenless, true, not p_owns_transaction, v_ties
        );
        set v_freed = v_ties;
        if p_keyless is not null then
            call rowq.internal_read_ties(v_keyed, null, true, not p_owns_transaction, v_freed);
        end if;
        if v_freed is not null and p_is_keyed then
            call rowq.internal_release_dedup_keys(p_part_id, v_freed);
        end if;
    else
        call rowq.internal_read_ties(p_messages, p_tokenless, false, true, v_ties);
        if p_keyless is not null then
            delete m
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join (
                select distinct a.message_id
                from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
            ) f on f.message_id = j.message_id
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        end if;
        if json_length(v_keyed) = 1 then
            set v_message_id = json_value(v_keyed, '$[0][0]');
            delete m, k
            from rowq.message m force index (primary)
            left join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
               and k.message_id = m.message_id
            where m.message_id = v_message_id;
        elseif v_keyed is not null then
            -- Delete in key order, because enqueue_batch inserts its keys in that order.
            delete m, k
            from (
                select j.message_id
                from json_table(v_keyed, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message x force index (primary) on x.message_id = j.message_id
                order by x.dedup_key
                limit 1000000
            ) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            left join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
               and k.message_id = j.message_id;
        end if;
    end if;
    if v_ties is not null then
        call rowq.internal_cut_ties(p_part_id, v_ties, p_owns_transaction);
    end if;
end//
delimiter ;

-- [file internal/enter_group.sql]
drop procedure if exists rowq.internal_enter_group;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_enter_group(
    p_part_id int,
    p_group_key varbinary(800),
    out p_has_token boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_enter_group
-- purpose   Take a token of a group: true with one, false where the message has to wait behind others.
-- promise   P21 P22 P24
-- locks     a new message_group row, or the group's, shared; waits for who opens or closes it
    declare v_limit, v_newest, v_no int;
    declare v_is_full boolean;
    declare v_tokens longtext;
    set p_has_token = null;

    select q.group_limit, (
               select json_arrayagg(t.token_no)
               from rowq.message_group t force index (primary)
               where t.part_id = p_part_id
                 and t.group_key = p_group_key
           )
    into v_limit, v_tokens
    from rowq.queue q
    where q.part_id = p_part_id;
    set v_tokens = coalesce(v_tokens, '[]');

    looks: loop
        set v_is_full = json_length(v_tokens) >= v_limit;
        if v_is_full then
            -- Hold the tokens to the end of the transaction: whoever would give the last one back
            -- knows by this that a message is coming. The look was without a lock, because two that
            -- wait with a lock for the same number meet a deadlock.
            select json_arrayagg(h.token_no) into v_tokens
            from (
                select t.token_no
                from json_table(v_tokens, '$[*]' columns (token_no smallint path '$')) j
                straight_join rowq.message_group t force index (primary)
                    on t.part_id = p_part_id
                   and t.group_key = p_group_key
                   and t.token_no = j.token_no
                /*!80000 for share of t */ /*M!100600 lock in share mode */
            ) h;
            set v_tokens = coalesce(v_tokens, '[]'), p_has_token = false;
        else
            -- Take the first free number. The count keeps a limit that was lowered.
            set v_no = 1, p_has_token = true;
            while json_contains(v_tokens, concat(v_no)) do
                set v_no = v_no + 1;
            end while;
            begin
                declare continue handler for 1062 set p_has_token = false;
                insert into rowq.message_group (part_id, group_key, token_no)
                values (p_part_id, p_group_key, v_no);
            end;
            if not p_has_token then
                set v_tokens = json_array_append(v_tokens, '$', v_no);
            elseif v_limit = 1 then
                -- Any limit leaves room for one.
                leave looks;
            end if;
        end if;

        -- Each of these may have waited, and an alter_queue that has come meanwhile does not see
        -- this message. So what counts is the limit that is read after them.
        select q.group_limit into v_newest
        from rowq.queue q
        where q.part_id = p_part_id;
        if p_has_token and v_newest >= v_limit
           or v_is_full and json_length(v_tokens) >= v_newest then
            leave looks;
        end if;
        -- Another one took the number, a token was given back in between, or the limit was changed:
        -- try once more.
        if p_has_token then
            delete from rowq.message_group
            where part_id = p_part_id
              and group_key = p_group_key
              and token_no = v_no;
        end if;
        set v_limit = v_newest;
    end loop;
end//
delimiter ;

-- [file internal/expand_range.sql]
drop procedure if exists rowq.internal_expand_range;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_expand_range(
    p_first_id bigint,
    p_last_id bigint,
    p_lane smallint,
    p_attempt smallint,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_expand_range
-- purpose   Return the messages of a claim that holds a range of ids as an array of [message_id, lane, attempt].
-- promise   P02
-- differs   no such helper elsewhere: other engines keep arrays
    -- An array of as many zeros counts to the end of the range. A recursive query would end at a
    -- limit that a session may set. In JSON, MariaDB quotes a parameter, but not a sum.
    select json_arrayagg(json_array(p_first_id + j.place - 1, p_lane + 0, p_attempt + 0))
    into p_messages
    from json_table(
        concat('[0', repeat(',0', p_last_id - p_first_id), ']'),
        '$[*]' columns (place for ordinality)
    ) j;
    if p_messages is null then
        -- No function returns a text that is longer than max_allowed_packet.
        call rowq.internal_refuse(
            'max_allowed_packet is too low for so many messages in one call'
        );
    end if;
end//
delimiter ;

-- [file internal/expire.sql]
drop procedure if exists rowq.internal_expire;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_expire(
    p_part_id int,
    p_archive_days int,
    p_limit int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- routine   internal_expire
-- purpose   Withdraw messages whose time has come, until p_limit is passed; return how many there were. Call it in a transaction of its own.
-- promise   P13 P36
-- locks     as internal_pop_expired; expiry rows; then as complete
    -- Times are in microseconds, and those of internal_rescan_floors.
    declare c_short_walk bigint default 300;
    declare c_long_walk bigint default 20000;
    -- The engine cuts an array of more than a megabyte, and keys of as many messages, written in
    -- hex, must fit into one.
    declare v_step_size int default least(p_limit, 250);
    declare v_most_seen bigint default 10 * p_limit;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_started, v_now datetime(6) default utc_timestamp(6);
    declare v_latest bigint default timestampdiff(microsecond, '1970-01-01', v_now) - 500000;
    declare v_floor, v_first, v_took, v_pause bigint;
    declare v_is_checked boolean;
    declare v_since datetime(6);
    declare v_after bigint default 0;
    declare v_due, v_messages, v_tokenless, v_gone, v_some, v_kept longtext;
    declare v_seen, v_count int default 0;
    set p_expired = 0;

    -- Put the floor right first, so that what was committed late is found.
    select l.floor, l.check_after <= v_now into v_floor, v_is_checked
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -8;
    call rowq.internal_first_key(p_part_id, -8, if(v_is_checked, 0, v_floor), v_first);
    set v_since = v_epoch + interval v_first microsecond,
        v_took = timestampdiff(microsecond, v_now, utc_timestamp(6)),
        v_first = least(v_first, v_latest);
    if v_is_checked and v_took > c_long_walk then
        set v_pause = least(v_took * 50, 3600000000);
        update rowq.lane l
        set l.check_after = utc_timestamp(6) + interval v_pause microsecond
        where l.part_id = p_part_id
          and l.lane = -8;
    end if;
    if v_first < v_floor
       or v_first > v_floor + if(v_took > c_short_walk, 0, 60000000) then
        call rowq.internal_move_floor(p_part_id, -8, v_floor, v_first);
        set v_floor = v_first;
    end if;

    steps: while v_since <= v_now and v_seen < v_most_seen and p_expired < p_limit do
        -- One statement looks for the message in all places, so that none is missed on its way from
        -- one to another. A note may be there of a message that does not expire yet, or not at all:
        -- its writer could not see it.
        select json_arrayagg(json_array(
                   e.message_id, e.lane, e.seq,
                   case
                       when m.expires_at is null then null
                       when m.expires_at > v_now then 'later'
                       when r.message_id is not null then 'ready'
                       when d.message_id is not null then 'delayed'
                       when b.message_id is not null then 'blocked'
                       when g.message_id is not null then 'grouped'
                   end,
                   e.expiry_id, timestampdiff(microsecond, '1970-01-01', e.expires_at),
                   timestampdiff(microsecond, '1970-01-01', m.due_at),
                   timestampdiff(microsecond, '1970-01-01', m.expires_at)
               ))
        into v_due
        from (
            select x.expires_at, x.expiry_id, x.message_id, x.lane, x.seq
            from rowq.expiry x force index (primary)
            where x.part_id = p_part_id
              and x.expires_at >= v_since
              and x.expires_at <= v_now
              and (x.expires_at > v_since or x.expiry_id > v_after)
            order by x.part_id, x.expires_at, x.expiry_id
            limit v_step_size
        ) e
        left join rowq.message m force index (primary) on m.message_id = e.message_id
        left join rowq.ready r force index (primary)
            on r.part_id = p_part_id
           and r.lane = e.lane
           and r.seq = e.seq
           and r.message_id = e.message_id
        left join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = m.due_at
           and d.message_id = m.message_id
        left join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = m.message_id
        left join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = m.group_key
           and g.message_id = m.message_id;
        if v_due is null then
            leave steps;
        end if;
        set v_count = json_length(v_due), v_seen = v_seen + v_count;

        call rowq.internal_pop_expired(p_part_id, v_due, v_messages, v_tokenless);
        if v_messages is not null then
            call rowq.internal_finish(
                p_part_id, p_archive_days, true, v_messages, v_tokenless, null, true, 'expired'
            );
            set p_expired = p_expired + json_length(v_messages);
        end if;

        -- A message that is in no place has ended, is dead, or is held by a claim, and who gives it
        -- back adds a row. One that another session holds now is looked for again.
        select json_arrayagg(
                   if(j.place is null or p.message_id is not null,
                      json_array(j.expiry_id, j.expires_at), null)
               ),
               json_arrayagg(
                   if(j.place <> 'later' and p.message_id is null,
                      json_array(j.expiry_id, j.expires_at), null)
               )
        into v_gone, v_some
        from json_table(
            v_due,
            '$[*]' columns (
                message_id bigint path '$[0]',
                place varchar(20) path '$[3]',
                expiry_id bigint path '$[4]',
                expires_at bigint path '$[5]'
            )
        ) j
        left join (
            select distinct a.message_id
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) a
        ) p on p.message_id = j.message_id;
        delete e
        from json_table(
            v_gone, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.part_id = p_part_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id;
        if locate('"later"', v_due) > 0 then
            update json_table(
                v_due,
                '$[*]' columns (
                    place varchar(20) path '$[3]',
                    expiry_id bigint path '$[4]',
                    expires_at bigint path '$[5]',
                    later bigint path '$[7]'
                )
            ) j
            straight_join rowq.expiry e force index (primary)
                on e.part_id = p_part_id
               and e.expires_at = v_epoch + interval j.expires_at microsecond
               and e.expiry_id = j.expiry_id
            set e.expires_at = v_epoch + interval j.later microsecond
            where j.place = 'later';
        end if;
        set v_kept = if(v_kept is null, v_some, json_merge_preserve(v_kept, v_some)),
            v_since = v_epoch
                + interval json_extract(v_due, concat('$[', v_count - 1, '][5]')) microsecond,
            v_after = json_extract(v_due, concat('$[', v_count - 1, '][4]'));
        if v_count < v_step_size then
            leave steps;
        end if;
        -- Take the time anew, because what the end of a message has let go on has a row of a later
        -- moment.
        set v_now = utc_timestamp(6);
    end while;

    -- Put what is kept behind the others that are due, once it could stand in front of them: else a
    -- session that is idle in its transaction must not make every look write.
    if v_seen >= v_most_seen
       or v_seen > 0 and timestampdiff(microsecond, v_started, utc_timestamp(6)) > c_long_walk then
        update json_table(
            v_kept, '$[*]' columns (expiry_id bigint path '$[0]', expires_at bigint path '$[1]')
        ) j
        straight_join rowq.expiry e force index (primary)
            on e.part_id = p_part_id
           and e.expires_at = v_epoch + interval j.expires_at microsecond
           and e.expiry_id = j.expiry_id
        set e.expires_at = v_now;
    end if;
    if v_seen > 0 then
        call rowq.internal_first_key(p_part_id, -8, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -8, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

-- [file internal/find_outside_strings.sql]
drop procedure if exists rowq.internal_find_outside_strings;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_find_outside_strings(
    p_value longtext,
    p_pattern varchar(200),
    out p_found boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_find_outside_strings
-- purpose   Look in long JSON, but not in its strings, for a pattern that a number in 210 characters matches.
-- differs   no such helper elsewhere: MySQL gives up a regular expression in a long text (3699)
    declare c_inside varchar(40) default '"(?:[^"\\\\]++|\\\\.)*+';
    declare c_before varchar(80) default concat('^(?:[^"]++|', c_inside, '")*+');
    declare c_size int default 10000;
    -- Only bytes are found without counting all characters before them, and no byte of a longer
    -- character is one of those that the patterns name.
    declare v_bytes longblob default cast(p_value as binary);
    declare v_at bigint default 1;
    declare v_piece, v_rest longtext;
    declare v_kept longtext default '';
    set p_found = false;

    while not p_found and v_at <= length(v_bytes) do
        set v_piece = concat(v_kept, convert(substring(v_bytes, v_at, c_size) using latin1)),
            v_at = v_at + c_size;
        -- A string that does not end here goes on in the next piece, perhaps after half an escape.
        set v_rest = case
            when v_piece regexp concat(c_before, c_inside, '\\\\$') then '"\\'
            when v_piece regexp concat(c_before, '"') then '"'
            else ''
        end;
        set v_piece = regexp_replace(v_piece, concat(c_inside, '(?:"|\\\\?$)'), ' ');
        set p_found = v_piece regexp p_pattern,
            v_kept = concat(right(v_piece, 210), v_rest);
    end while;
end//
delimiter ;

-- [file internal/finish.sql]
drop procedure if exists rowq.internal_finish;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_finish(
    p_part_id int,
    p_archive_days int,
    p_is_keyed boolean,
    p_messages longtext,
    p_tokenless longtext,
    p_keyless longtext,
    p_owns_transaction boolean,
    p_state varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_finish
-- purpose   Remove finished messages, or note them for the archive; p_is_keyed is false where none has a key, those in p_tokenless have no token of their group, and those in p_keyless no dedup key any more.
-- promise   P04 P12 P22 P26 P32
-- locks     as internal_lock_ties and internal_end_tied; message rows; result rows; as
--           internal_end_awaited
    declare v_rest, v_slice longtext;
    declare v_is_sliced boolean default false;

    if p_archive_days > 0 then
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), p_state, p_messages);
    end if;
    if p_archive_days > 0 or p_is_keyed then
        set v_rest = p_messages;
        while v_rest is not null do
            call rowq.internal_next_slice(v_rest, v_slice);
            if v_rest is not null and not v_is_sliced then
                call rowq.internal_lock_ties(
                    p_part_id, p_messages, p_keyless, p_archive_days = 0 or not p_owns_transaction
                );
                set v_is_sliced = true;
            end if;
            call rowq.internal_end_tied(
                p_part_id, p_archive_days > 0, p_is_keyed, v_slice, p_tokenless, p_keyless,
                p_owns_transaction
            );
        end while;
    else
        delete m
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.has_successors is null;
        if row_count() < json_length(p_messages) then
            call rowq.internal_end_awaited(p_part_id, p_messages, p_owns_transaction);
        end if;
    end if;
    -- What was completed has results of its own, which complete keeps.
    if p_state <> 'completed' then
        call rowq.internal_push_result(p_part_id, p_messages, p_state, null, null, null);
    end if;
end//
delimiter ;

-- [file internal/finished_of.sql]
drop procedure if exists rowq.internal_finished_of;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_finished_of(
    p_part_id int,
    p_message_ids longtext,
    out p_finished_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_finished_of
-- purpose   Return which of these messages are finished and not yet archived; null where there is none.
-- differs   PostgreSQL compares arrays
    select json_arrayagg(x.message_id) into p_finished_ids
    from rowq.finished f force index (primary)
    straight_join json_table(
        f.messages, '$[*]' columns (message_id bigint path '$[0]')
    ) x
    straight_join (
        select distinct j.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    ) a on a.message_id = x.message_id
    where f.part_id = p_part_id
      and f.finish_id > 0;
end//
delimiter ;

-- [file internal/first_key.sql]
drop procedure if exists rowq.internal_first_key;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_first_key(
    p_part_id int,
    p_lane smallint,
    p_from bigint,
    out p_first bigint
)
sql security definer
reads sql data
begin
-- routine   internal_first_key
-- purpose   Return the first live key of a lane from p_from on; null where there is none.
-- promise   P13 P14
    declare v_attempt smallint;
    declare v_due_at, v_since datetime(6);
    set p_first = null;

    case p_lane
        when -1 then
            select c.claim_id, c.messages is null into p_first, v_attempt
            from rowq.claim c force index (primary)
            where c.part_id = p_part_id
              and c.claim_id > 0
              and c.claim_id >= p_from
            order by c.part_id, c.claim_id
            limit 1;
        when -2 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select d.due_at, d.attempt into v_due_at, v_attempt
            from rowq.delayed d force index (primary)
            where d.part_id = p_part_id
              and d.due_at >= v_since
            order by d.part_id, d.due_at, d.message_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -3 then
            select f.finish_id, f.messages is null into p_first, v_attempt
            from rowq.finished f force index (primary)
            where f.part_id = p_part_id
              and f.finish_id > 0
              and f.finish_id >= p_from
            order by f.part_id, f.finish_id
            limit 1;
        when -5 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.due_at, r.is_hint into v_due_at, v_attempt
            from rowq.recheck r force index (primary)
            where r.part_id = p_part_id
              and r.due_at >= v_since
            order by r.part_id, r.due_at, r.recheck_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -8 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select e.expires_at, e.lane into v_due_at, v_attempt
            from rowq.expiry e force index (primary)
            where e.part_id = p_part_id
              and e.expires_at >= v_since
            order by e.part_id, e.expires_at, e.expiry_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -9 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select r.finished_at, r.state = 'dead' into v_due_at, v_attempt
            from rowq.result r force index (result_finished_ix)
            where r.part_id = p_part_id
              and r.finished_at >= v_since
            order by r.part_id, r.finished_at
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -10 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select h.ended_at, h.outcome is null into v_due_at, v_attempt
            from rowq.history h force index (primary)
            where h.part_id = p_part_id
              and h.ended_at >= v_since
            order by h.part_id, h.ended_at, h.message_id, h.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        when -6 then
            set v_since = timestamp'1970-01-01 00:00:00' + interval p_from microsecond;
            select s.started_at, s.messages into v_due_at, v_attempt
            from rowq.started s force index (primary)
            where s.part_id = p_part_id
              and s.claim_id > 0
              and s.started_at >= v_since
            order by s.part_id, s.started_at, s.claim_id
            limit 1;
            set p_first = timestampdiff(microsecond, '1970-01-01', v_due_at);
        else
            select r.seq, r.attempt into p_first, v_attempt
            from rowq.ready r force index (primary)
            where r.part_id = p_part_id
              and r.lane = p_lane
              and r.seq >= p_from
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit 1;
    end case;
end//
delimiter ;

-- [file internal/follow_death.sql]
drop procedure if exists rowq.internal_follow_death;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_follow_death(
    p_part_id int,
    p_dead_id bigint,
    p_owns_transaction boolean,
    inout p_failed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_follow_death
-- purpose   Let the messages go on that wait for a dead one and do not mind; those that fail with it are added to p_failed, as internal_unblock returns them.
-- promise   P27
-- locks     successor rows; as internal_unblock; new recheck rows
-- differs   part of internal_follow_deaths on PostgreSQL
    declare c_most int default 1000;
    declare v_ids, v_again, v_some longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        straight_join rowq.blocked b force index (primary)
            on b.part_id = s.part_id
           and b.message_id = s.message_id
        where s.part_id = p_part_id
          and s.predecessor_id = p_dead_id
          and b.on_dead in ('continue', 'fail')
        order by s.part_id, s.predecessor_id, s.message_id
        limit c_most
    ) h;
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = p_dead_id
           and s.message_id = j.message_id;
        if json_length(v_ids) = c_most then
            call rowq.internal_recheck_later(
                p_part_id, null, json_array(p_dead_id + 0), true
            );
        end if;
        call rowq.internal_unblock(
            p_part_id, v_ids, null, p_owns_transaction, v_again, v_some
        );
        if v_again is not null then
            call rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
        if v_some is not null then
            set p_failed = if(
                p_failed is null, v_some, json_merge_preserve(p_failed, v_some)
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/follow_deaths.sql]
drop procedure if exists rowq.internal_follow_deaths;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_follow_deaths(
    p_part_id int,
    p_dead longtext,
    p_failed longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_follow_deaths
-- purpose   Let what waits for dead messages do as it asked: arrays that begin with message_id. p_failed are messages that fail, as internal_unblock returns them, and are made dead first.
-- promise   P10 P12 P27 P32
-- locks     message rows, tried only, those of p_failed waited for in the caller's transaction; new
--           dead and result rows; dedup rows; as internal_follow_death; new recheck rows
    declare c_most int default 1000;
    declare v_count int default 0;
    declare v_dead longtext default p_dead;
    declare v_failed longtext default p_failed;
    declare v_rest, v_slice, v_ties, v_free, v_held, v_awaited longtext;
    declare v_at int;
    declare v_is_sliced boolean;

    levels: loop
        if v_failed is not null then
            insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
            select p_part_id, j.message_id, j.lane, 0, utc_timestamp(6),
                   concat('predecessor ', j.dead_id, ' is dead')
            from json_table(
                v_failed,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    dead_id bigint path '$[3]'
                )
            ) j;
            call rowq.internal_push_result(p_part_id, v_failed, 'dead', null, null, null);
            set v_rest = v_failed, v_is_sliced = false;
            while v_rest is not null do
                call rowq.internal_next_slice(v_rest, v_slice);
                if v_rest is not null and not v_is_sliced then
                    call rowq.internal_lock_ties(
                        p_part_id, v_failed, null, not p_owns_transaction
                    );
                    set v_is_sliced = true;
                end if;
                call rowq.internal_read_ties(
                    v_slice, null, true, not p_owns_transaction, v_ties
                );
                if v_ties is not null then
                    call rowq.internal_release_dedup_keys(p_part_id, v_ties);
                end if;
            end while;
            set v_dead = v_failed, v_count = v_count + json_length(v_failed);
        end if;

        -- Where a row is locked, a producer is adding a message that waits: look again when it is
        -- there.
        select json_arrayagg(json_array(h.message_id, h.has_successors)) into v_free
        from (
            select m.message_id, m.has_successors
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */ skip locked
        ) h;
        select json_arrayagg(j.message_id) into v_awaited
        from json_table(
            v_free, '$[*]' columns (message_id bigint path '$[0]', is_awaited int path '$[1]')
        ) j
        where j.is_awaited;
        if coalesce(json_length(v_free), 0) < json_length(v_dead) then
            select json_arrayagg(j.message_id) into v_held
            from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
            left join (
                select distinct x.message_id
                from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) x
            ) f on f.message_id = j.message_id
            where f.message_id is null;
            call rowq.internal_recheck_later(p_part_id, null, v_held, true);
        end if;

        -- An old snapshot does not show every message that waits, and a long tree dies in steps, so
        -- that no transaction grows without end.
        if v_awaited is null then
            leave levels;
        elseif not p_owns_transaction or v_count > c_most then
            call rowq.internal_recheck_later(p_part_id, null, v_awaited, true);
            leave levels;
        end if;

        set v_at = 0, v_failed = null;
        while v_at < json_length(v_awaited) do
            call rowq.internal_follow_death(
                p_part_id, json_extract(v_awaited, concat('$[', v_at, ']')), p_owns_transaction,
                v_failed
            );
            set v_at = v_at + 1;
        end while;
        if v_failed is null then
            leave levels;
        end if;
    end loop;
end//
delimiter ;

-- [file internal/free_successors.sql]
drop procedure if exists rowq.internal_free_successors;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_free_successors(
    p_part_id int,
    p_predecessor_id bigint,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_free_successors
-- purpose   Let the messages go on that have waited for this one, which has ended; leave to maintain those that cannot go on now.
-- promise   P26
-- locks     successor rows; as internal_let_go; new recheck rows
    declare c_most int default 1000;
    declare v_ids, v_again longtext;

    select json_arrayagg(h.message_id) into v_ids
    from (
        select s.message_id
        from rowq.successor s force index (primary)
        where s.part_id = p_part_id
          and s.predecessor_id = p_predecessor_id
        order by s.part_id, s.predecessor_id, s.message_id
        limit c_most
    ) h;
    -- An old snapshot does not show every message that waits.
    if not p_owns_transaction or json_length(v_ids) = c_most then
        call rowq.internal_recheck_later(
            p_part_id, null, json_array(p_predecessor_id + 0), false
        );
    end if;
    if v_ids is not null then
        delete s
        from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = p_predecessor_id
           and s.message_id = j.message_id;
        call rowq.internal_let_go(
            p_part_id, v_ids, p_predecessor_id, p_owns_transaction, v_again
        );
        if v_again is not null then
            call rowq.internal_recheck_later(p_part_id, v_again, null, false);
        end if;
    end if;
end//
delimiter ;

-- [file internal/has_late_claim.sql]
drop procedure if exists rowq.internal_has_late_claim;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_has_late_claim(
    p_part_id int,
    p_from bigint,
    p_before bigint,
    out p_has_late boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_has_late_claim
-- purpose   Return whether a claim with a number from p_from to below p_before is there, or was made by a transaction that is still open.
-- promise   P28
-- locks     claim rows of that range, not waited for; a time-out may roll the transaction back, so
--           call it before anything is changed
-- differs   PostgreSQL knows which transactions are open
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_claim_id bigint;
    declare v_is_range boolean;
    -- MariaDB allows no "nowait" in procedures (1314), but a time-out of 0, which MySQL does not
    -- have.
    declare exit handler for 1205, 3572
    begin
        set session innodb_lock_wait_timeout = v_patience;
        set p_has_late = true;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;

    /*M!100600 set session innodb_lock_wait_timeout = 0; */
    select c.claim_id, c.messages is null into v_claim_id, v_is_range
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id > 0
      and c.claim_id >= p_from
      and c.claim_id < p_before
    limit 1
    for update /*!80000 nowait */;
    set session innodb_lock_wait_timeout = v_patience;
    set p_has_late = v_claim_id is not null;
end//
delimiter ;

-- [file internal/health_queue.sql]
drop procedure if exists rowq.internal_health_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_health_queue(p_part_id int, out p_checks longtext)
sql security definer
reads sql data
begin
-- routine   internal_health_queue
-- purpose   Return the checks of a queue, as JSON arrays in a row.
-- promise   P13
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_oldest, v_paused_at, v_due_at, v_lease_until, v_recheck_at, v_run_at datetime(6);
    declare v_finished_at, v_expires_at, v_ended_at datetime(6);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_delayed_from, v_recheck_from, v_expiry_from, v_result_from datetime(6);
    declare v_history_from datetime(6);
    declare v_claim_from bigint;
    declare v_result_seconds double;
    declare v_history_days int;
    declare v_attempt smallint;
    declare v_is_hint boolean;
    declare v_dead, v_waiting, v_failed, v_message_id bigint;
    set p_checks = null;

    select q.paused_at, q.result_seconds, q.history_days
    into v_paused_at, v_result_seconds, v_history_days
    from rowq.queue q
    where q.part_id = p_part_id;
    -- Begin each look where the first live row may be, beyond the dead ones.
    select max(if(l.lane = -1, l.floor, 0)),
           v_epoch + interval max(if(l.lane = -2, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -5, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -8, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -9, l.floor, 0)) microsecond,
           v_epoch + interval max(if(l.lane = -10, l.floor, 0)) microsecond
    into v_claim_from, v_delayed_from, v_recheck_from, v_expiry_from, v_result_from,
         v_history_from
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane between -10 and -1;

    call rowq.internal_oldest_ready(p_part_id, v_oldest);
    set p_checks = concat_ws(',', p_checks, json_array(
        'oldest_ready', p_part_id,
        coalesce(timestampdiff(microsecond, v_oldest, v_now) / 1e6, 0), 300, 3600,
        concat(
            'seconds that the oldest ready message has waited',
            if(v_paused_at is null, '', '; the queue is paused')
        )
    ));

    select count(*) into v_dead
    from (
        select d.attempt
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'dead_messages', p_part_id, v_dead, 1, 1000,
        'dead messages, counted up to 1000; see list_dead and reset'
    ));

    select d.due_at, d.attempt into v_due_at, v_attempt
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at >= v_delayed_from
      and d.due_at <= v_now
    order by d.part_id, d.due_at, d.message_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_delayed', p_part_id,
        coalesce(timestampdiff(microsecond, v_due_at, v_now) / 1e6, 0), 30, 300,
        'seconds that the oldest due message has not been promoted; call maintain every second'
    ));

    select min(c.lease_until) into v_lease_until
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id > 0
      and c.claim_id >= v_claim_from
      and c.lease_until <= v_now;
    set p_checks = concat_ws(',', p_checks, json_array(
        'expired_leases', p_part_id,
        coalesce(timestampdiff(microsecond, v_lease_until, v_now) / 1e6, 0), 30, 300,
        'seconds that the oldest expired lease has not been reaped; call maintain every second'
    ));

    select count(*) into v_waiting
    from (
        select s.message_id
        from (
            select d.message_id, d.attempt
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
            order by d.part_id desc, d.message_id desc
            limit 10000
        ) n
        straight_join rowq.successor s force index (primary)
            on s.part_id = p_part_id
           and s.predecessor_id = n.message_id
        straight_join rowq.blocked b force index (primary)
            on b.part_id = s.part_id
           and b.message_id = s.message_id
        limit 1000
    ) h;
    set p_checks = concat_ws(',', p_checks, json_array(
        'waits_for_dead', p_part_id, v_waiting, 1, 1000,
        'messages that wait for the newest 10000 dead ones, counted up to 1000; reset or '
        'cancel these'
    ));

    select r.due_at, r.is_hint into v_recheck_at, v_is_hint
    from rowq.recheck r force index (primary)
    where r.part_id = p_part_id
      and r.due_at >= v_recheck_from
      and r.due_at <= v_now
    order by r.part_id, r.due_at, r.recheck_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_groups', p_part_id,
        coalesce(timestampdiff(microsecond, v_recheck_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a group has waited for a transaction of a producer to end, or for maintain'
    ));

    select e.expires_at, e.message_id into v_expires_at, v_message_id
    from rowq.expiry e force index (primary)
    where e.part_id = p_part_id
      and e.expires_at >= v_expiry_from
      and e.expires_at <= v_now
    order by e.part_id, e.expires_at, e.expiry_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_expiries', p_part_id,
        coalesce(timestampdiff(microsecond, v_expires_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a message whose time has come has waited for maintain, or for who holds it'
    ));

    select r.finished_at, r.state = 'dead' into v_finished_at, v_is_hint
    from rowq.result r force index (result_finished_ix)
    where r.part_id = p_part_id
      and r.finished_at >= v_result_from
      and r.finished_at <= v_now
    order by r.part_id, r.finished_at
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_results', p_part_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_finished_at, v_now) / 1e6, 0) - v_result_seconds,
            0
        ),
        300, 3600,
        'seconds that the oldest result has been kept beyond result_seconds; call maintain '
        'every second'
    ));

    select h.ended_at, h.attempt into v_ended_at, v_attempt
    from rowq.history h force index (primary)
    where h.part_id = p_part_id
      and h.ended_at >= v_history_from
      and h.ended_at <= v_now
    order by h.part_id, h.ended_at, h.message_id, h.claim_id
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_history', p_part_id,
        greatest(
            coalesce(timestampdiff(microsecond, v_ended_at, v_now) / 1e6, 0)
            - v_history_days * 86400,
            0
        ),
        3600, 86400,
        'seconds that the oldest attempt has been kept beyond history_days; call maintain '
        'every second'
    ));

    select min(if(s.next_run_at <= v_now, s.next_run_at, null)), count(s.last_error)
    into v_run_at, v_failed
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id;
    set p_checks = concat_ws(',', p_checks, json_array(
        'overdue_schedules', p_part_id,
        coalesce(timestampdiff(microsecond, v_run_at, v_now) / 1e6, 0), 30, 300,
        'seconds that a tick of a schedule has not been run; call maintain every second'
    ));
    set p_checks = concat_ws(',', p_checks, json_array(
        'failed_schedules', p_part_id, v_failed, 1, 1000,
        'schedules whose last tick made no message; list_schedules says why'
    ));
end//
delimiter ;

-- [file internal/health_server.sql]
drop procedure if exists rowq.internal_health_server;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_health_server(inout p_checks longtext)
sql security definer
reads sql data
begin
-- routine   internal_health_server
-- purpose   Append the checks that concern the whole server: who holds back the purge, how much waits for it, numbers that run out.
-- differs   this engine's own
    declare v_age double default 0;
    declare v_length, v_used double default 0;
    declare v_table varchar(64);
    declare v_thread bigint;
    declare v_may_look boolean default true;
    -- In some clouds no account may look at other sessions, because that needs the PROCESS
    -- privilege (1227).
    declare continue handler for 1227, 1142, 1044 set v_may_look = false;

    -- trx_started is in the time zone of the machine, so convert the present moment to that.
    select t.trx_mysql_thread_id,
           timestampdiff(
               second, t.trx_started, convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')
           )
    into v_thread, v_age
    from information_schema.innodb_trx t
    where t.trx_mysql_thread_id <> connection_id()
    order by t.trx_started
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'clean_up_horizon', null, greatest(v_age, 0), 300, 3600,
        case
            when not v_may_look then concat('unknown: grant process on *.* to ', current_user())
            when v_thread is null or v_age < 1 then 'no transaction is older than a second'
            else concat(
                'connection ', v_thread,
                ' keeps dead rows from being purged; rowq stays fast, other tables grow'
            )
        end
    ));

    select coalesce(max(m.count), 0) into v_length
    from information_schema.innodb_metrics m
    where m.name = 'trx_rseg_history_len';
    set p_checks = concat_ws(',', p_checks, json_array(
        'purge_lag', null, greatest(v_length, 0), 1000000, 100000000,
        if(
            v_may_look, 'transactions whose dead rows wait for the purge',
            concat('unknown: grant process on *.* to ', current_user())
        )
    ));

    select h.table_name, h.used into v_table, v_used
    from (
        select t.table_name,
               1e2 * t.auto_increment / if(t.table_name = 'queue', 2147483647, 9223372036854775807)
                   as used
        from information_schema.tables t
        where t.table_schema = 'rowq'
          and t.table_name in ('queue', 'message', 'finished')
    ) h
    order by h.used desc
    limit 1;
    set p_checks = concat_ws(',', p_checks, json_array(
        'sequence_near_end', null, coalesce(v_used, 0), 50, 90,
        concat('per cent of the numbers of rowq.', coalesce(v_table, 'message'), ' are used up')
    ));
end//
delimiter ;

-- [file internal/hint_groups.sql]
drop procedure if exists rowq.internal_hint_groups;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_hint_groups(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_hint_groups
-- purpose   Have maintain look whether each group in which messages wait may have more of them in work.
-- promise   P24
-- locks     new recheck rows
    declare v_group_key, v_next varbinary(800) default '';
    declare v_lane smallint;

    -- Go from group to group and not from message to message.
    while v_next is not null do
        set v_next = null;
        select g.group_key, g.lane into v_next, v_lane
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key > v_group_key
          and g.group_key < x'FF'
        order by g.part_id, g.group_key, g.message_id
        limit 1;
        if v_next is not null then
            set v_group_key = v_next;
            insert into rowq.recheck (part_id, due_at, recheck_id, group_key, is_hint)
            values (
                p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991, v_group_key, true
            );
        end if;
    end while;
end//
delimiter ;

-- [file internal/idle_parts.sql]
drop procedure if exists rowq.internal_idle_parts;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_idle_parts(
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
                       and l.lane = -1
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

-- [file internal/is_id_list.sql]
drop procedure if exists rowq.internal_is_id_list;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_is_id_list(p_message_ids longtext, out p_is_good boolean)
sql security definer
modifies sql data
begin
-- routine   internal_is_id_list
-- purpose   Return whether a text is a JSON array of ids, not too long and without null; a null text passes.
-- promise   P15
    declare v_count, v_good int;
    if p_message_ids is not null then
        if json_valid(p_message_ids) and json_type(p_message_ids) = 'ARRAY' then
            set v_count = json_length(p_message_ids);
            if v_count <= 10000
               and p_message_ids regexp '\\A\\[[\\-0-9,\\x20]*\\]\\z'
               and not p_message_ids regexp '[0-9]{20}' then
                -- Most lists have nothing but short numbers, so that this pattern is enough. The
                -- patterns mean the same whatever default_regex_flags says.
                set v_good = v_count;
            elseif v_count <= 10000 then
                select count(*) into v_good
                from json_table(
                    p_message_ids, '$[*]' columns (id varchar(40) path '$')
                ) a
                where a.id regexp '\\A-?[0-9]{1,19}\\z';
            end if;
        end if;
    end if;
    set p_is_good = p_message_ids is null or coalesce(v_good = v_count, false);
end//
delimiter ;

-- [file internal/join_groups.sql]
drop procedure if exists rowq.internal_join_groups;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_join_groups(
    p_part_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_join_groups
-- purpose   Let messages join their groups: [message_id, lane, attempt, group key in hex or null]; return the ids that wait there, the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
    declare v_message_id bigint;
    declare v_lane smallint;
    declare v_group_key, v_full_key varbinary(800);
    declare v_has_token boolean;
    declare v_is_end boolean default false;
    declare each_message cursor for
        select j.message_id, j.lane, unhex(j.group_key)
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                group_key varchar(1600) path '$[3]'
            )
        ) j
        where j.group_key is not null
        order by j.group_key, j.message_id;
    declare continue handler for not found set v_is_end = true;
    set p_waiting = null;

    open each_message;
    messages: loop
        fetch each_message into v_message_id, v_lane, v_group_key;
        if v_is_end then
            leave messages;
        end if;
        -- A group that is full stays so until the end of this transaction.
        set v_has_token = false;
        if not v_group_key <=> v_full_key then
            call rowq.internal_enter_group(p_part_id, v_group_key, v_has_token);
            set v_is_end = false;
        end if;
        if not v_has_token then
            set v_full_key = v_group_key, p_waiting = concat_ws(',', p_waiting, v_message_id);
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, v_message_id, v_lane);
        end if;
    end loop;
    close each_message;
    set p_waiting = concat('[', p_waiting, ']');
end//
delimiter ;

-- [file internal/json_fault.sql]
drop procedure if exists rowq.internal_json_fault;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_json_fault(
    p_name varchar(20),
    p_value longtext,
    p_kind varchar(20),
    p_deepest int,
    p_max_length int,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_json_fault
-- purpose   Return what is wrong with headers or results: p_kind is what they must be, p_deepest how deep 20 levels are, from the outside; null means nothing.
-- promise   P15
    -- This finds a number of more than 100 digits, or with an exponent above 200.
    declare c_hard varchar(200) default '(?:[0-9.]{102}|[0-9]{101}'
        '|[0-9.]++[eE][-+]?0*+(?:20[1-9]|2[1-9][0-9]|[3-9][0-9][0-9]|[1-9][0-9]{3}))';
    declare c_short int default 65536;
    declare v_found boolean;
    -- MySQL raises 3157 for JSON that is nested more than 100 deep, MariaDB 4040 for more than 31.
    declare exit handler for 3157, 4040
        set p_fault = concat(
            p_name, ' must be a JSON ', lower(p_kind), ', nested at most 20 deep'
        );

    -- For MariaDB, JSON that is nested more than 31 deep is not valid, so the first text names the
    -- depth too.
    set p_fault = case
        when not json_valid(p_value)
            then concat(p_name, ' must be a JSON ', lower(p_kind), ', nested at most 20 deep')
        when json_type(p_value) <> p_kind
            then concat(p_name, ' must be a JSON ', lower(p_kind))
        when char_length(p_value) > p_max_length
            then concat(p_name, ' are longer than ', p_max_length, ' characters')
        when json_depth(p_value) > p_deepest
            then concat(p_name, ' are nested more than 20 deep')
        -- The first pattern seldom finds anything. Where it does, the second one looks again and
        -- passes over the strings in the value.
        when char_length(p_value) <= c_short
            and p_value regexp c_hard
            and p_value regexp concat(
                '^(?:[^"0-9]++|"(?:[^"\\\\]++|\\\\.)*+"|(?!', c_hard, ')[0-9.eE+-]++)*+', c_hard
            )
            then concat(p_name, ' have a number of too many digits')
    end;
    if p_fault is null and char_length(p_value) > c_short then
        call rowq.internal_find_outside_strings(
            p_value, concat('(?<![0-9.])', c_hard), v_found
        );
        if v_found then
            set p_fault = concat(p_name, ' have a number of too many digits');
        end if;
    end if;
end//
delimiter ;

-- [file internal/json_length.sql]
drop procedure if exists rowq.internal_json_length;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_json_length(p_value longtext, out p_length bigint)
sql security definer
modifies sql data
begin
-- routine   internal_json_length
-- purpose   Return the length of a JSON value where a character that was written as an escape of six counts once.
-- differs   no such helper elsewhere: MariaDB keeps JSON as it was written
    declare c_size int default 10000;
    declare v_bytes longblob default cast(p_value as binary);
    declare v_at bigint default 1;
    declare v_piece varbinary(10001);
    set p_length = char_length(p_value);
    -- In a long text the time that replace takes grows with the square of what it finds. A piece
    -- has one byte of the next one, so that an escape that begins in it is whole.
    while v_at <= length(v_bytes) do
        set v_piece = substring(v_bytes, v_at, c_size + 1), v_at = v_at + c_size;
        set p_length = p_length
            - (length(v_piece) - length(replace(v_piece, x'5C75', ''))) div 2 * 5;
    end while;
end//
delimiter ;

-- [file internal/leave_groups.sql]
drop procedure if exists rowq.internal_leave_groups;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_leave_groups(
    p_part_id int,
    p_ties longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_leave_groups
-- purpose   Pass on the tokens of messages that have ended: [message_id, group key in hex or null]; leave to maintain those that cannot be passed on now.
-- promise   P22 P24
-- locks     as internal_pass_group; new ready and recheck rows
    declare v_group_key varbinary(800);
    declare v_pause double;
    declare v_is_left boolean;
    declare v_is_end boolean default false;
    declare v_next, v_ready longtext;
    -- A cursor reads the list once: a look at its n-th element reads all those before it.
    declare each_token cursor for
        select unhex(j.group_key)
        from json_table(
            p_ties,
            '$[*]' columns (place for ordinality, group_key varchar(1600) path '$[1]')
        ) j
        where j.group_key is not null
        order by j.place;
    declare continue handler for not found set v_is_end = true;

    open each_token;
    tokens: loop
        fetch each_token into v_group_key;
        if v_is_end then
            leave tokens;
        end if;
        call rowq.internal_pass_group(
            p_part_id, v_group_key, false, p_owns_transaction, v_next, v_is_left
        );
        if v_next is not null then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
        if v_is_left then
            select q.group_pause_seconds into v_pause
            from rowq.queue q
            where q.part_id = p_part_id;
            insert into rowq.recheck (part_id, due_at, recheck_id, group_key)
            values (
                p_part_id, utc_timestamp(6) + interval round(v_pause * 1000000) microsecond,
                uuid_short() & 9007199254740991, v_group_key
            );
        end if;
        set v_is_end = false;
    end loop;
    close each_token;

    if v_ready is not null then
        call rowq.internal_push_ready(p_part_id, concat('[', v_ready, ']'));
    end if;
end//
delimiter ;

-- [file internal/let_go.sql]
drop procedure if exists rowq.internal_let_go;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_let_go(
    p_part_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    out p_again longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_let_go
-- purpose   Let blocked messages go on that wait for nothing any more; those that fail with a predecessor are dead. p_again are the ids of those that need another look.
-- promise   P25 P26 P27
-- locks     as internal_unblock and internal_follow_deaths
    declare v_failed longtext;
    call rowq.internal_unblock(
        p_part_id, p_message_ids, p_ended_id, p_owns_transaction, p_again, v_failed
    );
    if v_failed is not null then
        call rowq.internal_follow_deaths(p_part_id, null, v_failed, p_owns_transaction);
    end if;
end//
delimiter ;

-- [file internal/locate_messages.sql]
drop procedure if exists rowq.internal_locate_messages;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_locate_messages(
    p_part_id int,
    p_message_id bigint,
    p_enqueued_at datetime(6),
    p_group_key varbinary(800),
    inout p_due_at datetime(6),
    out p_state varchar(20),
    out p_lane smallint,
    out p_attempt smallint,
    out p_claim_id bigint,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6),
    out p_lease_until datetime(6),
    out p_finished_at datetime(6),
    out p_waits_for bigint,
    out p_progress varchar(2000)
)
sql security definer
reads sql data
begin
-- routine   internal_locate_messages
-- purpose   Find where a message is that still has a body; p_due_at is passed in as its last place in delayed.
    declare v_due_at datetime(6) default p_due_at;
    declare v_lane smallint;
    set p_due_at = null, p_state = null, p_lane = null, p_attempt = null, p_claim_id = null,
        p_worker_name = null, p_leased_at = null, p_lease_until = null, p_finished_at = null,
        p_waits_for = null, p_progress = null;

    select 'delayed', d.lane, d.attempt, d.due_at
    into p_state, p_lane, p_attempt, p_due_at
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at = v_due_at
      and d.message_id = p_message_id;

    if p_state is null then
        select 'dead', d.lane, d.attempt, d.died_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
          and d.message_id = p_message_id;
    end if;

    if p_state is null then
        select 'blocked', b.lane, 0, b.due_at, b.predecessor_id
        into p_state, p_lane, p_attempt, p_due_at, p_waits_for
        from rowq.blocked b force index (primary)
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    end if;

    if p_state is null and p_group_key is not null then
        select 'blocked', g.lane, 0
        into p_state, p_lane, p_attempt
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id = p_message_id;
        select g.message_id, g.lane into p_waits_for, v_lane
        from rowq.grouped g force index (primary)
        where p_state is not null
          and g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id < p_message_id
        order by g.part_id desc, g.group_key desc, g.message_id desc
        limit 1;
    end if;

    if p_state is null then
        select 'leased', c.lane, c.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id > 0
          and c.messages is null
          and p_message_id between c.first_id and c.last_id
        limit 1;
    end if;

    if p_state is null then
        select 'leased', j.lane, j.attempt, c.claim_id, c.worker_name, c.leased_at,
               c.lease_until, c.progress
        into p_state, p_lane, p_attempt, p_claim_id, p_worker_name, p_leased_at,
             p_lease_until, p_progress
        from rowq.claim c force index (primary)
        straight_join json_table(
            c.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where c.part_id = p_part_id
          and c.claim_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select f.state, j.lane, j.attempt, f.finished_at
        into p_state, p_lane, p_attempt, p_finished_at
        from rowq.finished f force index (primary)
        straight_join json_table(
            f.messages, '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where f.part_id = p_part_id
          and f.finish_id > 0
          and j.message_id = p_message_id
        limit 1;
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at.
    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
          and r.seq = timestampdiff(microsecond, '1970-01-01', p_enqueued_at)
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        select 'ready', r.lane, r.attempt
        into p_state, p_lane, p_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.message_id = p_message_id
        limit 1;
    end if;

    if p_state is null then
        -- Another session has moved the message from one place to another between these looks, so
        -- it is in that session's hands: report it as leased.
        set p_state = 'leased';
    end if;
end//
delimiter ;

-- [file internal/lock_dead.sql]
drop procedure if exists rowq.internal_lock_dead;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6),
    out p_part_id int,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_dead
-- purpose   Refuse bad arguments of reset and discard_dead, and lock the dead messages that they mean, as [message_id, lane, attempt, holds_group]; null where there is none.
-- locks     the part, shared; dead rows, passing over locked ones
    declare v_limit int default if(p_message_ids is null, coalesce(p_max_messages, 1000), 10000);
    declare v_seen longtext;

    call rowq.internal_check_ids(p_message_ids);
    call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);
    if p_message_ids is not null
       and (p_message_type is not null or p_died_before is not null) then
        call rowq.internal_refuse('message_type and died_before go together with no message_ids');
    end if;

    call rowq.internal_require_queue(p_queue_name, p_part_id);
    call rowq.internal_lock_part_shared(p_part_id, p_queue_name);

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    if p_message_ids is null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select d.message_id
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and (p_died_before is null or d.died_at < p_died_before)
              and (p_message_type is null or cast(p_message_type as binary) = (
                  select cast(m.message_type as binary)
                  from rowq.message m force index (primary)
                  where m.message_id = d.message_id
              ))
            order by d.part_id, d.message_id
            limit 10000
        ) h;
    else
        select json_arrayagg(h.message_id) into v_seen
        from (
            select distinct d.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = a.message_id
        ) h;
    end if;
    select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.holds_group))
    into p_dead
    from (
        select d.message_id, d.lane, d.attempt, d.holds_group
        from (
            select distinct a.message_id
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) a
            order by a.message_id
        ) j
        straight_join rowq.dead d force index (primary)
            on d.part_id = p_part_id
           and d.message_id = j.message_id
        limit v_limit
        for update skip locked
    ) h;
end//
delimiter ;

-- [file internal/lock_due.sql]
drop procedure if exists rowq.internal_lock_due;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_due(
    p_part_id int,
    p_since datetime(6),
    p_limit int,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_due
-- purpose   Lock up to p_limit due messages, earliest first, but no more than fit into one text whatever their keys: [message_id, lane, attempt, due_at in microseconds, group key in hex or null].
-- promise   P06 P11 P13
-- locks     delayed rows, passing over locked ones
-- differs   elsewhere a range is locked without its gaps
    -- A key of 800 bytes in hex, three numbers, and what stands between them.
    declare c_longest int default 1800;
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_from datetime(6) default p_since;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    -- MariaDB cuts what json_arrayagg returns, too, and a dequeue pins no session for that.
    declare v_longest bigint default
        /*!80000 @@max_allowed_packet */
        /*M!100600 least(@@max_allowed_packet, @@group_concat_max_len) */;
    declare v_left int default least(p_limit, greatest(1, v_longest div c_longest));
    declare v_look int default v_left + 50;
    set p_messages = null;

    -- Find rows without locks, then lock them by their whole keys, as internal_lock_ready does in
    -- the caller's transaction, so that no gap is locked where producers insert.
    looks: while v_left > 0 do
        select json_arrayagg(json_array(
                   h.message_id, h.attempt, timestampdiff(microsecond, '1970-01-01', h.due_at)
               ))
        into v_seen
        from (
            select d.due_at, d.message_id, d.attempt
            from rowq.delayed d force index (primary)
            where d.part_id = p_part_id
              and d.due_at >= v_from
              and d.due_at <= v_now
              and (d.due_at > v_from or d.message_id > v_after)
            order by d.part_id, d.due_at, d.message_id
            limit v_look
        ) h;
        if v_seen is null then
            leave looks;
        end if;

        select json_arrayagg(json_array(
                   h.message_id, h.lane, h.attempt,
                   timestampdiff(microsecond, '1970-01-01', h.due_at), hex(h.group_key)
               ))
        into v_some
        from (
            select d.due_at, d.message_id, d.lane, d.attempt, d.group_key
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[2]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            limit v_left
            for update /*!80000 of d */ skip locked
        ) h;
        if v_some is not null then
            set v_left = v_left - json_length(v_some);
            set p_messages = if(
                p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
            );
        end if;
        if json_length(v_seen) < v_look then
            leave looks;
        end if;
        set v_from = v_epoch
                + interval json_extract(v_seen, concat('$[', v_look - 1, '][2]')) microsecond,
            v_after = json_extract(v_seen, concat('$[', v_look - 1, '][0]')),
            v_look = least(v_look * 2, 10000);
    end while;
end//
delimiter ;

-- [file internal/lock_gate.sql]
drop procedure if exists rowq.internal_lock_gate;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_gate(p_part_id int, out p_last_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_lock_gate
-- purpose   Lock the gate of a limited queue and return its last claim; null where that could not be done in a tenth of a second.
-- promise   P28 P29
-- locks     the gate of the queue, tried for a tenth of a second
    declare v_naps_left int default 10;
    set p_last_claim_id = null;

    tries: loop
        select g.last_claim_id into p_last_claim_id
        from rowq.gate g
        where g.part_id = p_part_id
        for update skip locked;
        if p_last_claim_id is not null or v_naps_left = 0 then
            leave tries;
        end if;
        -- Nap between tries, because the shortest time-out for a lock is a second.
        set v_naps_left = v_naps_left - 1;
        if sleep(0.01) then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end loop;
end//
delimiter ;

-- [file internal/lock_part_shared.sql]
drop procedure if exists rowq.internal_lock_part_shared;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_part_shared(p_part_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_lock_part_shared
-- purpose   Keep a queue from being dropped while messages are added or moved.
-- promise   P01 P02
-- locks     the row of the part, shared; waits for a drop that is under way
-- errors    RQ701
-- differs   on PostgreSQL the first insert waits for a drop
    declare v_part_id int;
    -- Lock the one row by its whole key, which covers no gap and finds the row as it is now, even
    -- under an old snapshot.
    select p.part_id into v_part_id
    from rowq.part p
    where p.part_id = p_part_id
    lock in share mode;
    if v_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;

-- [file internal/lock_ready.sql]
drop procedure if exists rowq.internal_lock_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_ready(
    p_part_id int,
    p_lane smallint,
    p_floor bigint,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_ready
-- purpose   Lock up to p_limit messages of one lane, from its floor on; null when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones
-- differs   elsewhere a range is locked without its gaps
    declare v_from bigint default p_floor;
    declare v_after bigint default 0;
    declare v_seen, v_some longtext;
    declare v_left int default p_limit;
    declare v_look int default p_limit + 50;
    set p_messages = null;

    if p_owns_transaction then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed))
        into p_messages
        from (
            select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
            from rowq.ready r force index (primary)
            where r.part_id = p_part_id
              and r.lane = p_lane
              and r.seq >= p_floor
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit p_limit
            for update skip locked
        ) h;
    else
        -- The caller's transaction may be repeatable read, where locking a range locks its gaps and
        -- makes producers wait. So find rows without locks, then lock them by their whole keys.
        looks: while v_left > 0 do
            select json_arrayagg(json_array(h.message_id, h.attempt, h.seq)) into v_seen
            from (
                select r.seq, r.message_id, r.attempt
                from rowq.ready r force index (primary)
                where r.part_id = p_part_id
                  and r.lane = p_lane
                  and r.seq >= v_from
                  and r.seq < 9223372036854775806
                  and (r.seq > v_from or r.message_id > v_after)
                order by r.part_id, r.lane, r.seq, r.message_id
                limit v_look
            ) h;
            if v_seen is null then
                leave looks;
            end if;

            select json_arrayagg(
                       json_array(h.message_id, h.lane, h.attempt + 1, h.seq, h.is_keyed)
                   )
            into v_some
            from (
                select r.lane, r.seq, r.message_id, r.attempt, r.is_keyed
                from json_table(
                    v_seen, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[2]')
                ) j
                straight_join rowq.ready r force index (primary)
                    on r.part_id = p_part_id
                   and r.lane = p_lane
                   and r.seq = j.seq
                   and r.message_id = j.message_id
                limit v_left
                for update /*!80000 of r */ skip locked
            ) h;
            if v_some is not null then
                set v_left = v_left - json_length(v_some);
                set p_messages = if(
                    p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
                );
            end if;
            if json_length(v_seen) < v_look then
                leave looks;
            end if;
            set v_from = json_extract(v_seen, concat('$[', v_look - 1, '][2]')),
                v_after = json_extract(v_seen, concat('$[', v_look - 1, '][0]')),
                v_look = least(v_look * 2, 10000);
        end while;
    end if;
end//
delimiter ;

-- [file internal/lock_ties.sql]
drop procedure if exists rowq.internal_lock_ties;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_lock_ties(
    p_part_id int,
    p_messages longtext,
    p_keyless longtext,
    p_with_messages boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_lock_ties
-- purpose   Lock at once what the ends of these messages would lock slice by slice: their dedup keys, but those of p_keyless, and their rows, if asked for.
-- promise   P12 P22 P26
-- locks     message rows, if asked for; then dedup rows, in key order
-- differs   elsewhere there are no slices
    declare v_count int;

    -- Who ends a slice has locked groups and keys by then, and a producer that waits for one of
    -- these may hold what the next slice needs. So wait for all of that before the first slice.
    if p_with_messages then
        select count(*) into v_count
        from (
            select m.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */
        ) h;
    end if;
    select count(*) into v_count
    from (
        select k.message_id
        from (
            select m.dedup_key
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            left join (
                select distinct a.message_id
                from json_table(p_keyless, '$[*]' columns (message_id bigint path '$')) a
            ) f on f.message_id = m.message_id
            where m.dedup_key is not null
              and f.message_id is null
            order by m.dedup_key
            limit 1000000
        ) o
        straight_join rowq.dedup k force index (primary)
            on k.part_id = p_part_id
           and k.dedup_key = o.dedup_key
        limit 1000000
        for update /*!80000 of k */
    ) h;
end//
delimiter ;

-- [file internal/look_for_idle.sql]
drop procedure if exists rowq.internal_look_for_idle;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_look_for_idle(p_parts longtext, out p_idle longtext)
sql security definer
reads sql data
begin
-- routine   internal_look_for_idle
-- purpose   Return those of the parts in which maintain would find nothing to do.
-- promise   P13 P14
    -- Times are in microseconds. A look into a part that takes longer has walked over dead rows, so
    -- that a floor must move.
    declare c_short_walk bigint default 300;
    declare c_short_look bigint default 2000 + 100 * json_length(p_parts);
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_looks longtext;

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
                   ), true)
                   and coalesce((
                       select r.due_at > v_now or r.is_hint is null
                       from rowq.recheck r force index (primary)
                       where r.part_id = l.part_id
                         and r.recheck_id > 0
                       order by r.part_id, r.due_at, r.recheck_id
                       limit 1
                   ), true)
                   and coalesce((
                       select e.expires_at > v_now or e.message_id is null
                       from rowq.expiry e force index (primary)
                       where e.part_id = l.part_id
                         and e.expiry_id > 0
                       order by e.part_id, e.expires_at, e.expiry_id
                       limit 1
                   ), true)
                   and (
                       select s.missed
                       from rowq.schedule s force index (primary)
                       where s.part_id = l.part_id
                         and s.next_run_at <= v_now
                       limit 1
                   ) is null
                   and (
                       not q.has_started
                       or coalesce((
                           select s.started_at > v_now - interval round(
                                      if(q.rate_limit > 0, q.rate_seconds, 0) * 1000000
                                  ) microsecond
                           from rowq.started s force index (primary)
                           where s.part_id = l.part_id
                             and s.claim_id > 0
                           order by s.part_id, s.started_at, s.claim_id
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_results
                       or coalesce((
                           select k.finished_at > v_now - interval round(
                                      q.result_seconds * 1000000
                                  ) microsecond
                                  or k.state is null
                           from rowq.result k force index (result_finished_ix)
                           where k.part_id = l.part_id
                             and k.message_id > 0
                           order by k.part_id, k.finished_at
                           limit 1
                       ), true)
                   )
                   and (
                       not q.has_history
                       or coalesce((
                           select h.ended_at >= v_now - interval q.history_days day
                                  or h.outcome is null
                           from rowq.history h force index (primary)
                           where h.part_id = l.part_id
                             and h.message_id > 0
                           order by h.part_id, h.ended_at, h.message_id, h.claim_id
                           limit 1
                       ), true)
                   ),
                   sysdate(6)
               )
           )
    into v_looks
    from json_table(p_parts, '$[*]' columns (part_id int path '$')) p
    left join rowq.lane l force index (primary)
        on l.part_id = p.part_id
       and l.lane = -1
    left join rowq.queue q force index (primary) on q.part_id = p.part_id;

    -- Where the server makes sysdate a constant, only the time of the whole look is known.
    if timestampdiff(microsecond, v_now, utc_timestamp(6)) > c_short_look then
        set v_looks = null;
    end if;

    select json_arrayagg(j.part_id) into p_idle
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
end//
delimiter ;

-- [file internal/maintain_archive.sql]
drop procedure if exists rowq.internal_maintain_archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_maintain_archive(
    p_part_id int,
    p_limit int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_archive
-- purpose   Run the archive part of maintain: move, purge whole days, drop partitions; an error in it is a warning.
-- promise   P09 P19
-- locks     a row of lane, passed over when locked; as archive and purge_archive
-- commits   its own transaction where the caller has none, and implicitly; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_archive_days int;
    declare v_lane smallint;
    declare v_kept, v_finished bigint;

    attempt: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                set p_archived = 0, p_purged = 0;
                -- After a deadlock (1213, 1020) the caller's transaction is gone, so the caller
                -- must get the error. So must a caller whose call was killed (1317) or ran out of
                -- its time (1969, 3024).
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                -- An error in the archive, such as a full disk, is only a warning, because
                -- promoting and reaping must go on.
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq archive: ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            set p_archived = 0, p_purged = 0, p_partitions_dropped = 0, p_is_done = false;
            set v_archive_days = 0, v_lane = null, v_kept = null, v_finished = null;

            call rowq.internal_begin_work(v_owns_transaction);
            select q.archive_days into v_archive_days
            from rowq.queue q
            where q.part_id = p_part_id;
            call rowq.internal_first_key(p_part_id, -3, 0, v_finished);
            if v_archive_days = 0 then
                -- A queue without an archive may have rows from a time when it had one, so look for
                -- them.
                select a.message_id into v_kept
                from rowq.archive a
                where a.part_id = p_part_id
                limit 1;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);

            if v_archive_days > 0 or v_kept is not null or v_finished is not null then
                if v_owns_transaction then
                    call rowq.internal_open_days(p_part_id, p_limit);
                end if;
                call rowq.internal_begin_work(v_owns_transaction);
                -- The archive part has an election of its own, so that the other parts go on while
                -- days are moved and dropped.
                select l.lane into v_lane
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = -3
                for update skip locked;
                if v_lane is not null then
                    call rowq.internal_archive(
                        p_part_id, p_limit, v_owns_transaction, p_archived
                    );
                    -- Purge whole days, because dropping a partition costs less than deleting its
                    -- rows. A queue that keeps no archive any more is purged up to now.
                    call rowq.internal_purge_archive(
                        p_part_id,
                        if(
                            v_archive_days > 0,
                            date(utc_timestamp(6) - interval v_archive_days day),
                            utc_timestamp(6)
                        ),
                        p_limit, v_owns_transaction, p_purged
                    );
                end if;
                call rowq.internal_commit_work(v_owns_transaction);
                if v_owns_transaction and v_lane is not null then
                    call rowq.internal_drop_days(p_partitions_dropped);
                end if;
                set p_is_done = v_lane is not null
                    and p_archived < p_limit
                    and p_purged < p_limit;
            else
                set p_is_done = true;
            end if;
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;

-- [file internal/maintain_delivery.sql]
drop procedure if exists rowq.internal_maintain_delivery;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_maintain_delivery(
    p_part_id int,
    p_limit int,
    out p_elected boolean,
    out p_promoted int,
    out p_reaped int,
    out p_died int,
    out p_expired int,
    out p_has_results boolean,
    out p_has_history boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_delivery
-- purpose   Run the part of maintain that deliveries wait for: floors, expiry, promote, reap, and what limits need.
-- promise   P09 P11 P13 P14 P24 P26 P27 P28 P29 P36
-- locks     as promote and reap; the part, shared; the gate, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_max_attempts, v_solved, v_max_leased, v_archive_days, v_history_days int;
    declare v_has_started boolean;
    declare v_started_seconds double;
    declare v_lane smallint;
    declare v_queue_name longtext;

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

            set v_max_attempts = null, p_has_results = false, p_has_history = false;
            select q.max_attempts, convert(q.queue_name using utf8mb4), q.max_leased, q.has_started,
                   if(q.rate_limit > 0, q.rate_seconds, 0), q.archive_days, q.has_results,
                   q.has_history, q.history_days
            into v_max_attempts, v_queue_name, v_max_leased, v_has_started, v_started_seconds,
                 v_archive_days, p_has_results, p_has_history, v_history_days
            from rowq.queue q
            where q.part_id = p_part_id;
            call rowq.internal_lock_part_shared(p_part_id, coalesce(v_queue_name, ''));
            -- The election lasts to the end of the transaction, which may be the caller's.
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -1
            for update skip locked;
            set p_elected = v_lane is not null, p_promoted = 0, p_reaped = 0, p_died = 0,
                p_expired = 0;

            if p_elected then
                -- Put the floors right first, so that the steps below find what was committed late.
                call rowq.internal_rescan_floors(
                    p_part_id, v_has_started, p_has_results, p_has_history
                );
                -- Not in the caller's transaction, whose snapshot may be old: a message that it
                -- does not show where it is now would be taken for one that has ended.
                if v_owns_transaction then
                    call rowq.internal_expire(p_part_id, v_archive_days, p_limit, p_expired);
                end if;
                call rowq.internal_promote(p_part_id, p_limit, v_owns_transaction, p_promoted);
                call rowq.internal_recheck(
                    p_part_id, p_limit, v_owns_transaction, true, v_solved
                );
                call rowq.internal_reap(
                    p_part_id, v_max_attempts, v_history_days, p_limit, v_owns_transaction,
                    p_reaped, p_died
                );
                -- Not in the caller's transaction, which may be repeatable read: rows that are gone
                -- by now would be locked with the gaps where dequeues insert.
                if v_has_started and v_owns_transaction then
                    call rowq.internal_purge_started(p_part_id, v_started_seconds, 10 * p_limit);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_elected and v_max_leased > 0 then
        call rowq.internal_move_safe_floor(p_part_id);
    end if;
end//
delimiter ;

-- [file internal/maintain_kept.sql]
drop procedure if exists rowq.internal_maintain_kept;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_maintain_kept(
    p_part_id int,
    p_what varchar(7),
    p_limit int,
    p_until datetime(6),
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_kept
-- purpose   Purge 'results' or 'history' in maintain: p_limit old rows, and till p_until up to ten times as many; an error in it is a warning.
-- promise   P19 P32 P37
-- locks     the part, shared; as internal_purge_results or internal_purge_history
-- commits   its own transactions where the caller has none, one a batch; never the caller's
-- differs   PostgreSQL has it in maintain_queue, in a block of its own
    declare c_most_batches int default 10;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_batches, v_batch int default 0;
    declare v_result_seconds double;
    declare v_history_days int;
    declare v_queue_name longtext;
    set p_purged = 0;

    batches: loop
        begin
            declare v_errno int;
            declare v_text varchar(128);
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno, v_text = message_text;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                -- As in internal_maintain_archive: these are the caller's to know.
                if (v_errno in (1213, 1020) and not v_owns_transaction)
                   or v_errno in (1317, 1969, 3024) then
                    resignal;
                end if;
                if v_tries_left = 0 then
                    set v_text = left(concat('rowq ', p_what, ': ', v_text), 128);
                    signal sqlstate '01000' set message_text = v_text;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set v_result_seconds = null, v_history_days = null;
            select q.result_seconds, q.history_days, convert(q.queue_name using utf8mb4)
            into v_result_seconds, v_history_days, v_queue_name
            from rowq.queue q
            where q.part_id = p_part_id;
            -- drop_queue locks these rows in another order.
            call rowq.internal_lock_part_shared(p_part_id, coalesce(v_queue_name, ''));
            if p_what = 'results' then
                call rowq.internal_purge_results(p_part_id, v_result_seconds, p_limit, v_batch);
            else
                call rowq.internal_purge_history(p_part_id, v_history_days, p_limit, v_batch);
            end if;
            call rowq.internal_commit_work(v_owns_transaction);
            set p_purged = p_purged + v_batch, v_batches = v_batches + 1;
            if v_batch < p_limit or v_batches = c_most_batches or utc_timestamp(6) > p_until then
                leave batches;
            end if;
        end;
        if v_tries_left = 0 then
            leave batches;
        end if;
    end loop;
end//
delimiter ;

-- [file internal/maintain_queue.sql]
drop procedure if exists rowq.internal_maintain_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_maintain_queue(
    p_part_id int,
    p_limit int,
    p_until datetime(6),
    out p_elected boolean,
    out p_promoted int,
    out p_reaped int,
    out p_died int,
    out p_archived int,
    out p_purged int,
    out p_partitions_dropped int,
    out p_expired int
)
sql security definer
modifies sql data
begin
-- routine   internal_maintain_queue
-- purpose   Run the housekeeping of one queue in the one session that is elected for it.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P32 P36 P37
-- locks     rows of lane, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701
    declare v_is_done boolean default true;
    declare v_has_results, v_has_history boolean;
    declare v_now datetime(6);
    declare v_more int;
    set p_archived = 0, p_purged = 0, p_partitions_dropped = 0;

    call rowq.internal_maintain_delivery(
        p_part_id, p_limit, p_elected, p_promoted, p_reaped, p_died, p_expired,
        v_has_results, v_has_history
    );
    if p_elected then
        call rowq.internal_run_schedules(p_part_id);
        call rowq.internal_close_fronts(p_part_id);
        call rowq.internal_maintain_archive(
            p_part_id, p_limit, p_archived, p_purged, p_partitions_dropped, v_is_done
        );
        if not v_is_done then
            call rowq.internal_sweep_again(p_part_id);
        end if;
        if v_has_results then
            -- Results leave history half of the time that is left.
            set v_now = utc_timestamp(6);
            call rowq.internal_maintain_kept(
                p_part_id, 'results', p_limit,
                v_now + interval timestampdiff(microsecond, v_now, p_until) div 2 microsecond,
                v_more
            );
            set p_purged = p_purged + v_more;
        end if;
        if v_has_history then
            call rowq.internal_maintain_kept(p_part_id, 'history', p_limit, p_until, v_more);
            set p_purged = p_purged + v_more;
        end if;
    end if;
end//
delimiter ;

-- [file internal/message_fault.sql]
drop procedure if exists rowq.internal_message_fault;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_message_fault(
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_max_body_length int,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_message_fault
-- purpose   Return what is wrong with the arguments of enqueue; null means nothing.
-- promise   P15
    declare v_is_good boolean;
    set p_fault = case
        when p_priority not between 0 and 9
            then concat('priority must be between 0 and 9, got ', p_priority)
        when p_body is not null and p_body_binary is not null
            then 'body and body_binary exclude each other'
        when char_length(p_message_type) > 200
            then 'message_type is longer than 200 characters'
        when p_delay_seconds is not null and p_run_at is not null
            then 'delay_seconds and run_at exclude each other'
        when p_delay_seconds not between 0 and 315360000
            then concat('delay_seconds must be between 0 and 315360000, got ', p_delay_seconds)
        when p_run_at > utc_timestamp(6) + interval 3650 day
            then 'run_at must be a moment within the next ten years'
        when char_length(p_dedup_key) not between 1 and 200
            then 'dedup_key must be 1 to 200 characters'
        when char_length(p_group_key) not between 1 and 200
            then 'group_key must be 1 to 200 characters'
        when p_max_attempts not between 1 and 10000
            then concat('max_attempts must be between 1 and 10000, got ', p_max_attempts)
        when not coalesce(
                p_on_predecessor_dead in ('hold', 'continue', 'fail'),
                p_on_predecessor_dead is null
            )
            then 'on_predecessor_dead must be hold, continue or fail'
        when p_expire_seconds not between 0.001 and 315360000
            then concat(
                'expire_seconds must be between 0.001 and 315360000, got ', p_expire_seconds
            )
    end;
    if p_predecessor_ids is not null and p_fault is null then
        call rowq.internal_is_id_list(p_predecessor_ids, v_is_good);
        if not v_is_good then
            set p_fault = 'predecessor_ids must be a flat list of at most 10000 ids, no null';
        end if;
    end if;
    -- This is the check of internal_check_text. Where no byte is ED, the engine skips the
    -- conversion.
    if locate(
            x'ED', cast(
                concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key) as binary
            )
        ) > 0
       and convert(
               convert(
                   concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key)
                   using utf16
               )
               using utf8mb4
           ) <> concat_ws('', p_body, p_message_type, p_headers, p_dedup_key, p_group_key)
       and p_fault is null then
        set p_fault = 'body, message_type, headers or a key has half of a surrogate pair';
    end if;
    if p_headers is not null and p_fault is null then
        call rowq.internal_json_fault('headers', p_headers, 'OBJECT', 20, 65536, p_fault);
    end if;

    -- The length has a procedure of its own, because the engine spends time even on the words of a
    -- statement that it passes over. Headers are 65536 characters at most, and JSON needs up to six
    -- bytes for one, so a body below this limit is never too long.
    if coalesce(length(p_body), length(p_body_binary), 0)
        > least(
            p_max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
        )
       and p_fault is null then
        call rowq.internal_body_fault(
            p_body, p_body_binary, p_headers, p_max_body_length, p_fault
        );
    end if;
end//
delimiter ;

-- [file internal/messages_json.sql]
drop procedure if exists rowq.internal_messages_json;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_messages_json(
    p_claim_id bigint,
    p_lease_until datetime(6),
    p_messages longtext,
    p_first int,
    p_count int,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_messages_json
-- purpose   Return p_count messages of a batch from p_first on, as JSON with commas between; null when one of several may be too long.
-- promise   P20
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_length bigint;
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;
    set p_json = null;

    -- No function makes a value that is longer than max_allowed_packet, and after one attempt
    -- MariaDB's json_object returns null for short messages too. So measure first, and never
    -- attempt it. JSON needs up to six bytes for one, and 500 bytes are enough for the keys and for
    -- what has no text.
    select 6 * max(
               coalesce(length(m.body), length(m.body_binary), 0) + coalesce(length(m.headers), 0)
               + coalesce(length(m.message_type), 0) + coalesce(length(m.last_error), 0)
           )
    into v_length
    from json_table(
        p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    where j.place between p_first and p_first + p_count - 1;

    if p_count = 1 and v_length + 500 > @@max_allowed_packet then
        -- Measure the JSON itself only where a single message may be too long. to_base64 adds line
        -- breaks, which count here although they are removed later.
        select coalesce(
                   length(json_quote(m.body)), length(m.body) * 6, length(m.body_binary) * 1.352, 0
               )
               + coalesce(length(json_extract(m.headers, '$')), 0)
               + 6 * coalesce(length(m.message_type), 0) + 6 * coalesce(length(m.last_error), 0)
        into v_length
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place = p_first;
    end if;

    if v_length + 500 <= @@max_allowed_packet then
        -- The engine cuts the result of group_concat to this length, and to max_allowed_packet.
        set session group_concat_max_len = @@max_allowed_packet;
        select group_concat(
                   json_object(
                       'claim_id', p_claim_id + 0, 'message_id', m.message_id, 'attempt', j.attempt,
                       'message_type', m.message_type, 'headers', json_extract(m.headers, '$'),
                       'body', m.body,
                       'body_binary', replace(to_base64(m.body_binary), '\n', ''),
                       'enqueued_at', date_format(m.enqueued_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'lease_until', date_format(p_lease_until, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                       'last_error', m.last_error
                   )
                   separator ','
               )
        into p_json
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.place between p_first and p_first + p_count - 1;
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;

-- [file internal/moment_of_local.sql]
drop procedure if exists rowq.internal_moment_of_local;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_moment_of_local(
    p_local datetime(6),
    p_time_zone varchar(64),
    out p_moment datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_moment_of_local
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    -- convert_tz is asked for local times only, because a moment has one, and a local time may have
    -- two moments or none.
    declare v_day_before datetime(6) default p_local - interval 1 day;
    declare v_day_after datetime(6) default p_local + interval 1 day;
    -- The moment by the offset of the day before, and by that of the day after.
    declare v_before datetime(6) default p_local - interval timestampdiff(
        minute, v_day_before, convert_tz(v_day_before, '+00:00', p_time_zone)
    ) minute;
    declare v_after datetime(6);

    if convert_tz(v_before, '+00:00', p_time_zone) = p_local then
        set p_moment = v_before;
    else
        set v_after = p_local - interval timestampdiff(
            minute, v_day_after, convert_tz(v_day_after, '+00:00', p_time_zone)
        ) minute;
        if convert_tz(v_after, '+00:00', p_time_zone) = p_local then
            set p_moment = v_after;
        else
            call rowq.internal_offset_change(
                least(v_before, v_after), greatest(v_before, v_after), p_time_zone, p_moment
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/move_floor.sql]
drop procedure if exists rowq.internal_move_floor;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_move_floor(
    p_part_id int,
    p_lane smallint,
    p_from bigint,
    p_to bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_move_floor
-- purpose   Move the floor of a lane down, or up if it still is where the caller saw it.
-- promise   P13 P14
-- locks     the row of the lane, passed over when locked
-- differs   PostgreSQL keeps floors in a ledger, as its readers walk dead versions
    declare v_floor bigint;
    -- Skip a locked row: its session is already moving the floor or opening the lane.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = p_lane
    for update skip locked;
    if v_floor = p_from or p_to < v_floor then
        update rowq.lane l
        set l.floor = p_to
        where l.part_id = p_part_id
          and l.lane = p_lane;
    end if;
end//
delimiter ;

-- [file internal/move_safe_floor.sql]
drop procedure if exists rowq.internal_move_safe_floor;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_move_safe_floor(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_move_safe_floor
-- purpose   Move the floor from which a limited queue's claims are counted up to the first one that is there or may yet be committed.
-- promise   P13 P28
-- locks     the gate, passed over when locked; as internal_has_late_claim
-- commits   its own transaction where the caller has none; never the caller's
-- differs   PostgreSQL has such a floor for each lane
    declare c_worth_it int default 400;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_floor, v_last, v_first bigint;
    declare v_has_late boolean;

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
            set v_last = null;

            -- In the caller's transaction the gate would be locked to its end. While this session
            -- has it, no dequeue that counts can add a claim.
            if v_owns_transaction then
                select g.last_claim_id into v_last
                from rowq.gate g
                where g.part_id = p_part_id
                for update skip locked;
            end if;
            if v_last is not null then
                select l.floor into v_floor
                from rowq.lane l force index (primary)
                where l.part_id = p_part_id
                  and l.lane = -7;
                call rowq.internal_first_key(p_part_id, -1, v_floor, v_first);
                -- Never pass the last claim that was counted: internal_note_start compares new ones
                -- with that.
                set v_first = least(coalesce(v_first, v_last + 1), v_last + 1);
                if v_first > v_floor + c_worth_it then
                    call rowq.internal_has_late_claim(
                        p_part_id, v_floor, v_first, v_has_late
                    );
                    if not v_has_late then
                        call rowq.internal_move_floor(p_part_id, -7, v_floor, v_first);
                    end if;
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

-- [file internal/next_cron.sql]
drop procedure if exists rowq.internal_next_cron;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_next_cron(
    p_bits varchar(136),
    p_time_zone varchar(64),
    p_after datetime(6),
    out p_moment datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_next_cron
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
-- promise   P31
-- errors    RQ711
-- differs   time zones other than UTC end with the year 2037, as the server's tables of them do
    declare v_end datetime(6) default '2038-01-01';
    declare v_minute datetime(6) default date_format(p_after, '%Y-%m-%d %H:%i:00');
    declare v_from datetime(6) default v_minute + interval 1 minute;
    declare v_local, v_next, v_moment, v_change, v_horizon datetime(6);
    set p_moment = null;

    -- Look again, because the server may have lost its tables of time zones since the schedule was
    -- made, and convert_tz returns null then.
    call rowq.internal_check_time_zone(p_time_zone);
    if p_time_zone = 'UTC' then
        call rowq.internal_next_cron_local(p_bits, v_from, p_moment);
    elseif p_after < v_end and substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        set v_next = convert_tz(v_minute, '+00:00', p_time_zone);
        times: loop
            set v_local = v_next + interval 1 minute;
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave times;
            end if;
            call rowq.internal_moment_of_local(v_next, p_time_zone, v_moment);
            if v_moment > p_after then
                set p_moment = v_moment;
                leave times;
            end if;
        end loop;
    elseif p_after < v_end then
        -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
        -- time is as far away as the clocks say unless they are changed on the way. The look for
        -- that goes no further than a day, because local times that do not match are none later
        -- either.
        moments: loop
            set v_local = convert_tz(v_from, '+00:00', p_time_zone);
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave moments;
            end if;
            set v_moment = v_from + interval timestampdiff(minute, v_local, v_next) minute,
                v_horizon = v_from + interval 26 hour;
            call rowq.internal_offset_change(
                v_from, least(v_moment, v_horizon), p_time_zone, v_change
            );
            if v_change is not null then
                set v_from = v_change;
            elseif v_moment <= v_horizon then
                set p_moment = v_moment;
                leave moments;
            else
                set v_from = greatest(v_horizon, v_moment - interval 26 hour);
            end if;
        end loop;
    end if;
    if p_moment >= v_end and p_time_zone <> 'UTC' then
        set p_moment = null;
    end if;
end//
delimiter ;

-- [file internal/next_cron_local.sql]
drop procedure if exists rowq.internal_next_cron_local;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_next_cron_local(
    p_bits varchar(136),
    p_from datetime(6),
    out p_local datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_next_cron_local
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    declare v_day date default date(p_from);
    declare v_end date default v_day + interval 3660 day;
    declare v_hour int default hour(p_from);
    declare v_minute int default minute(p_from);
    declare v_day_bit, v_weekday_bit char(1);
    declare v_found int;
    set p_local = null;

    days: while v_day < v_end do
        if substr(p_bits, 115 + month(v_day), 1) = '0' then
            set v_day = last_day(v_day) + interval 1 day;
        else
            set v_day_bit = substr(p_bits, 84 + dayofmonth(v_day), 1),
                v_weekday_bit = substr(p_bits, 127 + dayofweek(v_day), 1);
            if '1' = if(
                right(p_bits, 1) = '1',
                greatest(v_day_bit, v_weekday_bit), least(v_day_bit, v_weekday_bit)
            ) then
                -- Look for the first hour, and in that hour for the first minute.
                hours: while v_hour < 24 do
                    set v_found = locate('1', p_bits, 61 + v_hour);
                    if v_found not between 1 and 84 then
                        leave hours;
                    end if;
                    if v_found > 61 + v_hour then
                        set v_hour = v_found - 61, v_minute = 0;
                    end if;
                    set v_found = locate('1', p_bits, 1 + v_minute);
                    if v_found between 1 and 60 then
                        set p_local = v_day + interval (v_hour * 60 + v_found - 1) minute;
                        leave days;
                    end if;
                    set v_hour = v_hour + 1, v_minute = 0;
                end while;
            end if;
            set v_day = v_day + interval 1 day;
        end if;
        set v_hour = 0, v_minute = 0;
    end while;
end//
delimiter ;

-- [file internal/next_number.sql]
drop procedure if exists rowq.internal_next_number;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_next_number(
    p_part_id int,
    p_lane smallint,
    out p_number bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_next_number
-- purpose   Take the next number of the claims (lane -1) or of the finished batches (lane -3).
-- promise   P13
-- locks     for finished batches a new row, which is gone before anybody sees it
-- differs   elsewhere a sequence gives it
    if p_lane = -1 then
        set p_number = uuid_short() & 9007199254740991;
    else
        insert into rowq.finished (part_id, finished_at, state, messages)
        values (p_part_id, utc_timestamp(6), 'completed', '[]');
        set p_number = last_insert_id();
        delete f
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id
          and f.finish_id = p_number;
    end if;
end//
delimiter ;

-- [file internal/next_slice.sql]
drop procedure if exists rowq.internal_next_slice;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_next_slice(inout p_messages longtext, out p_slice longtext)
sql security definer
reads sql data
begin
-- routine   internal_next_slice
-- purpose   Take as many messages from the head of an array as internal_read_ties can return the ties of, however long their keys are; p_messages are the others, or null.
-- promise   P12 P22
-- differs   elsewhere no aggregate is cut off at the length of a packet
    -- Two keys of 800 bytes in hex, an id, and what stands between them.
    declare c_longest_tie int default 3300;
    declare v_most int default greatest(1, @@max_allowed_packet div c_longest_tie);
    declare v_all longtext default p_messages;

    set p_slice = p_messages, p_messages = null;
    if json_length(v_all) > v_most then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_slice
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.place <= v_most;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        where j.place > v_most;
    end if;
end//
delimiter ;

-- [file internal/next_tick.sql]
drop procedure if exists rowq.internal_next_tick;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_next_tick(
    p_bits varchar(136),
    p_interval_seconds double,
    p_time_zone varchar(64),
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_after datetime(6),
    out p_tick datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_next_tick
-- purpose   Return the first tick of a schedule after a moment; null where there is none. p_bits is its parsed cron expression, or null.
-- promise   P31
-- errors    RQ711
    declare v_after datetime(6) default greatest(p_after, p_starts_at - interval 1 microsecond);
    declare v_step, v_passed bigint;

    if p_bits is not null then
        call rowq.internal_next_cron(p_bits, p_time_zone, v_after, p_tick);
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        set v_step = round(p_interval_seconds * 1000000),
            v_passed = timestampdiff(microsecond, p_starts_at, v_after);
        set v_passed = if(v_passed < 0, 0, (v_passed div v_step + 1) * v_step);
        -- The type ends with the year 9999.
        set p_tick = if(
            timestampdiff(microsecond, '1970-01-01', p_starts_at) + v_passed < 253402214400000000,
            p_starts_at + interval v_passed microsecond, null
        );
    end if;
    if p_tick > p_ends_at then
        set p_tick = null;
    end if;
end//
delimiter ;

-- [file internal/note_cancels.sql]
drop procedure if exists rowq.internal_note_cancels;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_note_cancels(
    p_part_id int,
    p_message_ids longtext,
    out p_noted_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_note_cancels
-- purpose   Note in the claims that hold these messages that they were cancelled; return those noted, null where there is none.
-- promise   P34
-- locks     claim rows, passing over locked ones
    declare v_claim_ids, v_notes, v_noted longtext;
    declare v_notes_before int;
    set p_noted_ids = null;

    -- Find claims without locks, then lock them by their whole keys, so that no gap is locked.
    call rowq.internal_claims_of(p_part_id, p_message_ids, v_claim_ids, p_noted_ids);
    if v_claim_ids is not null then
        set p_noted_ids = null;
        select json_arrayagg(h.claim_id), sum(h.has_notes) into v_notes, v_notes_before
        from (
            select c.claim_id, c.cancel_ids is not null as has_notes
            from (
                select distinct a.claim_id
                from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) a
            ) j
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = j.claim_id
            for update /*!80000 of c */ skip locked
        ) h;
        set v_claim_ids = v_notes, v_notes = null;
    end if;

    -- Read the rows as they are now, even under an old snapshot.
    if v_notes_before > 0 then
        select json_arrayagg(h.message_id) into v_noted
        from (
            select n.message_id
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                c.cancel_ids, '$[*]' columns (message_id bigint path '$')
            ) n
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = n.message_id
            for update /*!80000 of c */
        ) h;
    end if;
    if v_claim_ids is not null then
        -- A list of ids goes as a text.
        select json_arrayagg(json_array(h.claim_id, concat(h.ids, ''))) into v_notes
        from (
            select c.claim_id, json_arrayagg(w.message_id) as ids
            from json_table(v_claim_ids, '$[*]' columns (claim_id bigint path '$')) l
            straight_join rowq.claim c force index (primary)
                on c.part_id = p_part_id
               and c.claim_id = l.claim_id
            straight_join json_table(
                coalesce(c.messages, concat('[[0]', repeat(',[0]', c.last_id - c.first_id), ']')),
                '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
            ) j
            straight_join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = if(c.messages is null, c.first_id + j.place - 1, j.message_id)
            left join (
                select distinct a.message_id
                from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) a
            ) o on o.message_id = w.message_id
            where o.message_id is null
            group by c.claim_id
            for update /*!80000 of c */
        ) h;
        update json_table(
            v_notes, '$[*]' columns (claim_id bigint path '$[0]', ids longtext path '$[1]')
        ) n
        straight_join rowq.claim c force index (primary)
            on c.part_id = p_part_id
           and c.claim_id = n.claim_id
        set c.cancel_ids = json_merge_preserve(coalesce(c.cancel_ids, '[]'), n.ids);
        select json_arrayagg(j.message_id) into p_noted_ids
        from json_table(v_notes, '$[*]' columns (ids longtext path '$[1]')) n
        straight_join json_table(n.ids, '$[*]' columns (message_id bigint path '$')) j;
        if v_noted is not null then
            set p_noted_ids = json_merge_preserve(v_noted, coalesce(p_noted_ids, '[]'));
        end if;
    end if;
end//
delimiter ;

-- [file internal/note_error.sql]
drop procedure if exists rowq.internal_note_error;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_note_error(p_messages longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_note_error
-- purpose   Store the error that messages failed with that are tried again, but of those whose rows a producer holds.
-- promise   P10
-- locks     message rows, tried only
-- differs   the last error stands beside the body, and not where the message waits
    -- Without a limit MySQL would merge what is selected into the update, and wait.
    update (
        select x.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message x force index (primary) on x.message_id = j.message_id
        limit 1000000
        for update /*!80000 of x */ skip locked
    ) h
    straight_join rowq.message m force index (primary) on m.message_id = h.message_id
    set m.last_error = left(p_error, 2000);
end//
delimiter ;

-- [file internal/note_expiry.sql]
drop procedure if exists rowq.internal_note_expiry;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_note_expiry(p_part_id int, p_messages longtext, p_seq bigint)
sql security definer
modifies sql data
begin
-- routine   internal_note_expiry
-- purpose   Let maintain look again for those of the messages that expire: [message_id, lane]. In ready, their places are those in the array behind p_seq; it is null where they wait elsewhere.
-- promise   P36
-- locks     new expiry rows
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_notes longtext;

    -- Read first, because an insert with a select would lock what it reads under the caller's
    -- repeatable read. maintain finds out about a message that an old snapshot does not show.
    select json_arrayagg(
               json_array(
                   j.message_id, if(p_seq is null, null, j.lane), p_seq + j.place,
                   timestampdiff(
                       microsecond, '1970-01-01', greatest(coalesce(m.expires_at, v_now), v_now)
                   )
               )
           )
    into v_notes
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]'
        )
    ) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;

    if v_notes is not null then
        insert into rowq.expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        select p_part_id, v_epoch + interval j.expires_at microsecond,
               uuid_short() & 9007199254740991, j.message_id, j.lane, j.seq
        from json_table(
            v_notes,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                expires_at bigint path '$[3]'
            )
        ) j;
    end if;
end//
delimiter ;

-- [file internal/note_start.sql]
drop procedure if exists rowq.internal_note_start;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_note_start(
    p_part_id int,
    p_claim_id bigint,
    p_last_claim_id bigint,
    p_started_at datetime(6),
    p_messages int,
    p_rate_limit int
)
sql security definer
modifies sql data
begin
-- routine   internal_note_start
-- purpose   Note a claim that was made under the queue's limits, and where there is a rate_limit the deliveries that it has begun.
-- promise   P28 P29
-- locks     the gate, locked by the caller; the new started row
    update rowq.gate g
    set g.last_claim_id = p_claim_id
    where g.part_id = p_part_id;

    if p_claim_id < p_last_claim_id then
        -- The numbers of claims begin again lower, as they may on another server. Count from the
        -- first one on until maintain has found where the claims begin now.
        call rowq.internal_move_floor(p_part_id, -7, 0, 0);
    end if;

    if p_rate_limit > 0 then
        insert into rowq.started (part_id, started_at, claim_id, messages)
        values (p_part_id, p_started_at, p_claim_id, p_messages);
    end if;
end//
delimiter ;

-- [file internal/offset_change.sql]
drop procedure if exists rowq.internal_offset_change;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_offset_change(
    p_from datetime(6),
    p_to datetime(6),
    p_time_zone varchar(64),
    out p_change datetime(6)
)
sql security definer
no sql
begin
-- routine   internal_offset_change
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    declare v_offset int default
        timestampdiff(minute, p_from, convert_tz(p_from, '+00:00', p_time_zone));
    declare v_low datetime(6) default p_from;
    declare v_middle datetime(6);
    set p_change = null;

    if timestampdiff(minute, p_to, convert_tz(p_to, '+00:00', p_time_zone)) <> v_offset then
        set p_change = p_to;
        while timestampdiff(minute, v_low, p_change) > 1 do
            set v_middle = v_low + interval timestampdiff(minute, v_low, p_change) div 2 minute;
            if timestampdiff(
                minute, v_middle, convert_tz(v_middle, '+00:00', p_time_zone)
            ) = v_offset then
                set v_low = v_middle;
            else
                set p_change = v_middle;
            end if;
        end while;
    end if;
end//
delimiter ;

-- [file internal/oldest_ready.sql]
drop procedure if exists rowq.internal_oldest_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_oldest_ready(p_part_id int, out p_enqueued_at datetime(6))
sql security definer
reads sql data
begin
-- routine   internal_oldest_ready
-- purpose   Find when the oldest message at the head of a lane was enqueued; null where there is none.
-- promise   P13
    declare v_lane smallint default -32768;
    declare v_next, v_attempt smallint;
    declare v_is_hidden boolean default false;
    declare v_floor, v_message_id bigint;
    declare v_head datetime(6);
    set p_enqueued_at = null;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Look into closed lanes too: there are messages, but an open transaction keeps others
            -- from opening the lanes.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;

        set v_lane = v_next, v_message_id = null, v_head = null;
        select r.message_id, r.attempt into v_message_id, v_attempt
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.part_id, r.lane, r.seq, r.message_id
        limit 1;
        select m.enqueued_at into v_head
        from rowq.message m force index (primary)
        where m.message_id = v_message_id;
        set p_enqueued_at = least(coalesce(p_enqueued_at, v_head), coalesce(v_head, p_enqueued_at));
    end loop;
end//
delimiter ;

-- [file internal/open_day.sql]
drop procedure if exists rowq.internal_open_day;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_open_day(p_day date)
sql security definer
modifies sql data
begin
-- routine   internal_open_day
-- purpose   Make sure that the archive has a partition that ends with this day.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL makes the partition in the transaction that needs it
    declare v_name varchar(64) default concat('p', date_format(p_day, '%Y%m%d'));
    declare v_end varchar(20) default concat("'", p_day + interval 1 day, "'");
    declare v_covering, v_bound varchar(64);
    declare v_is_done boolean;

    select p.partition_name, p.partition_description into v_covering, v_bound
    from information_schema.partitions p
    where p.table_schema = 'rowq'
      and p.table_name = 'archive'
      and (
          p.partition_description = 'MAXVALUE'
          or left(p.partition_description, 11) >= left(v_end, 11)
      )
    order by p.partition_ordinal_position
    limit 1;
    if v_covering <> v_name then
        -- Split the day off the partition that has covered it so far. Rows of the day that are
        -- there already move with it.
        call rowq.internal_shape_archive(
            concat(
                'alter table rowq.archive reorganize partition ', v_covering, ' into (partition ',
                v_name, ' values less than (', v_end, '), partition ', v_covering,
                ' values less than (', v_bound, '))'
            ),
            v_is_done
        );
    end if;
end//
delimiter ;

-- [file internal/open_days.sql]
drop procedure if exists rowq.internal_open_days;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_open_days(p_part_id int, p_limit int)
sql security definer
modifies sql data
begin
-- routine   internal_open_days
-- purpose   Make room in the archive for what is finished: the days of the next p_limit batches.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly; call it outside transactions
-- differs   PostgreSQL makes the partition in the transaction that needs it
    declare v_days longtext;
    declare v_floor bigint;
    declare v_at int default 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -3;
    select json_arrayagg(h.finished_on) into v_days
    from (
        select distinct date(f.finished_at) as finished_on
        from (
            select x.finished_at
            from rowq.finished x force index (primary)
            where x.part_id = p_part_id
              and x.finish_id > 0
              and x.finish_id >= v_floor
            order by x.part_id, x.finish_id
            limit p_limit
        ) f
    ) h;
    while v_at < coalesce(json_length(v_days), 0) do
        call rowq.internal_open_day(json_unquote(json_extract(v_days, concat('$[', v_at, ']'))));
        set v_at = v_at + 1;
    end while;
end//
delimiter ;

-- [file internal/open_lane.sql]
drop procedure if exists rowq.internal_open_lane;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_open_lane(p_part_id int, p_lane smallint)
sql security definer
modifies sql data
begin
-- routine   internal_open_lane
-- purpose   Let dequeue look into a lane, for a minute at least.
-- promise   P02
-- locks     the row of the lane, passed over when locked; else a new row of lane
    declare v_lane, v_mark smallint;
    -- Skip a locked row, so that no producer waits: its session is usually opening the lane too.
    select l.lane into v_lane
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = p_lane
    for update skip locked;
    if v_lane is not null then
        update rowq.lane l
        set l.is_open = true,
            l.sweep_at = utc_timestamp(6) + interval 1 minute
        where l.part_id = p_part_id
          and l.lane = p_lane
          and not l.is_open;
    else
        -- That session may roll back, or take long. So leave a mark, an open lane below -1000 that
        -- has no messages: while there is one, dequeue looks into closed lanes too. The next
        -- maintain finds the messages, opens the lane and deletes the mark.
        select l.lane into v_mark
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane < 0
          and l.is_open
        limit 1;
        if v_mark is null then
            -- Another session may have drawn the same number, and then there is a mark.
            insert ignore into rowq.lane (part_id, lane, is_open)
            values (p_part_id, -1001 - floor(31000 * rand()), true);
        end if;
    end if;
end//
delimiter ;

-- [file internal/outcomes.sql]
drop procedure if exists rowq.internal_outcomes;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_outcomes(
    p_message_ids longtext,
    p_messages longtext,
    p_outcome varchar(20),
    p_cancel_ids longtext
)
sql security definer
reads sql data
begin
-- routine   internal_outcomes
-- purpose   Return the result of a finishing routine: one row for each message; those in p_cancel_ids ended as cancelled.
-- promise   P08
-- differs   no such helper elsewhere: other engines return a query
    if p_cancel_ids is not null then
        if p_message_ids is null then
            select json_arrayagg(j.message_id) into p_message_ids
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j;
        end if;
        select a.message_id,
               case
                   when c.message_id is not null then 'cancelled'
                   when h.message_id is not null then p_outcome
                   else 'stale'
               end as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
        ) c on c.message_id = a.message_id
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    elseif p_message_ids is null then
        select j.message_id, p_outcome as outcome
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, message_id bigint path '$[0]')
        ) j
        order by j.place;
    elseif json_length(p_message_ids) = json_length(p_messages) then
        -- The claim held all of them, so none is stale.
        select a.message_id, p_outcome as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        order by a.place;
    else
        select a.message_id,
               if(h.message_id is not null, p_outcome, 'stale') as outcome
        from json_table(
            p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
        ) a
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) h on h.message_id = a.message_id
        order by a.place;
    end if;
end//
delimiter ;

-- [file internal/parse_cron.sql]
drop procedure if exists rowq.internal_parse_cron;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_parse_cron(p_cron longtext, out p_bits varchar(136))
sql security definer
modifies sql data
begin
-- routine   internal_parse_cron
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- promise   P15
-- errors    RQ711
    -- Bytes are compared, because collations ignore trailing blanks, and the pattern means the same
    -- whatever default_regex_flags says.
    declare v_text varchar(201) default trim(
        regexp_replace(
            case cast(lower(left(p_cron, 201)) as binary)
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            '[\\x20\\t]++', ' '
        )
    );
    declare v_minute, v_hour, v_day, v_month, v_weekday varchar(200);
    declare v_minutes, v_hours, v_days, v_months, v_weekdays varchar(60);

    if char_length(v_text) - char_length(replace(v_text, ' ', '')) <> 4
       or char_length(p_cron) > 200 then
        call rowq.internal_refuse(
            concat(
                'cron must be five fields (minute, hour, day, month, weekday) or a word such as ',
                '@daily, got ', left(p_cron, 60)
            )
        );
    end if;
    set v_minute = substring_index(v_text, ' ', 1),
        v_hour = substring_index(substring_index(v_text, ' ', 2), ' ', -1),
        v_day = substring_index(substring_index(v_text, ' ', 3), ' ', -1),
        v_month = substring_index(substring_index(v_text, ' ', -2), ' ', 1),
        v_weekday = substring_index(v_text, ' ', -1);
    call rowq.internal_parse_cron_field(v_minute, 'minute', 0, 59, null, v_minutes);
    call rowq.internal_parse_cron_field(v_hour, 'hour', 0, 23, null, v_hours);
    call rowq.internal_parse_cron_field(v_day, 'day', 1, 31, null, v_days);
    call rowq.internal_parse_cron_field(
        v_month, 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec ', v_months
    );
    -- Sunday is 0 and 7.
    call rowq.internal_parse_cron_field(
        v_weekday, 'weekday', 0, 7, 'sun mon tue wed thu fri sat ', v_weekdays
    );
    set p_bits = concat(
        v_minutes, v_hours, v_days, v_months,
        greatest(left(v_weekdays, 1), right(v_weekdays, 1)), substr(v_weekdays, 2, 6),
        if(left(v_minute, 1) = '*' or left(v_hour, 1) = '*', '0', '1'),
        if(left(v_day, 1) = '*' or left(v_weekday, 1) = '*', '0', '1')
    );
end//
delimiter ;

-- [file internal/parse_cron_field.sql]
drop procedure if exists rowq.internal_parse_cron_field;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_parse_cron_field(
    p_field longtext,
    p_name varchar(20),
    p_low int,
    p_high int,
    p_words varchar(60),
    out p_bits varchar(60)
)
sql security definer
modifies sql data
begin
-- routine   internal_parse_cron_field
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- promise   P15
-- errors    RQ711
    declare v_rest varchar(201) default concat(lower(p_field), ',');
    declare v_item, v_range varchar(200);
    declare v_first, v_last varchar(3);
    declare v_value, v_end, v_step int;
    set p_bits = repeat('0', p_high - p_low + 1);

    while v_rest <> '' do
        set v_item = substring_index(v_rest, ',', 1),
            v_rest = substr(v_rest, char_length(v_item) + 2),
            v_value = null, v_end = null, v_step = null;
        if v_item regexp
            '\\A(\\*|([0-9]{1,2}|[a-z]{3})(-([0-9]{1,2}|[a-z]{3}))?)(/[0-9]{1,2})?\\z'
        then
            set v_range = substring_index(v_item, '/', 1),
                v_step = if(locate('/', v_item) > 0, substring_index(v_item, '/', -1), 1);
            if v_range = '*' then
                set v_value = p_low, v_end = p_high;
            else
                set v_first = substring_index(v_range, '-', 1),
                    v_last = substring_index(v_range, '-', -1);
                call rowq.internal_parse_cron_value(v_first, p_low, p_words, v_value);
                call rowq.internal_parse_cron_value(v_last, p_low, p_words, v_end);
                -- A single value with steps goes on to the end.
                if locate('/', v_item) > 0 and locate('-', v_range) = 0 then
                    set v_end = p_high;
                end if;
            end if;
        end if;
        if not coalesce(
            v_value >= p_low and v_end <= p_high and v_value <= v_end and v_step > 0, false
        ) then
            call rowq.internal_refuse(
                concat(
                    'the ', p_name, ' of cron must be *, values from ', p_low, ' to ', p_high,
                    ', ranges or steps of these, got ', left(p_field, 60)
                )
            );
        end if;
        while v_value <= v_end do
            set p_bits = insert(p_bits, v_value - p_low + 1, 1, '1'),
                v_value = v_value + v_step;
        end while;
    end while;
end//
delimiter ;

-- [file internal/parse_cron_value.sql]
drop procedure if exists rowq.internal_parse_cron_value;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_parse_cron_value(
    p_word varchar(3),
    p_low int,
    p_words varchar(60),
    out p_value int
)
sql security definer
no sql
begin
-- routine   internal_parse_cron_value
-- purpose   Return the value of a number or a name in a field of a cron expression; -1 for a name that is none.
-- differs   elsewhere a query of internal_parse_cron_field reads both ends of a range
    if p_word regexp '\\A[0-9]' then
        set p_value = p_word;
    elseif locate(p_word, p_words) mod 4 = 1 then
        set p_value = p_low + locate(p_word, p_words) div 4;
    else
        set p_value = -1;
    end if;
end//
delimiter ;

-- [file internal/parse_message.sql]
drop procedure if exists rowq.internal_parse_message;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_parse_message(
    p_message longtext,
    p_is_published boolean,
    p_max_body_length int,
    out p_body longtext,
    out p_body_binary longblob,
    out p_message_type longtext,
    out p_headers longtext,
    out p_priority int,
    out p_delay_seconds double,
    out p_run_at datetime(6),
    out p_dedup_key longtext,
    out p_max_attempts int,
    out p_group_key longtext,
    out p_predecessor_ids longtext,
    out p_positions longtext,
    out p_on_predecessor_dead longtext,
    out p_expire_seconds double,
    out p_fault varchar(120)
)
sql security definer
modifies sql data
begin
-- routine   internal_parse_message
-- purpose   Read and check one message of enqueue_batch, or of publish_batch, where it has a topic and no predecessors.
-- promise   P15 P20
    declare c_keys longtext default if(
        p_is_published,
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "topic", "expire_seconds"]',
        '["body", "body_base64", "message_type", "headers", "priority", "delay_seconds", "run_at",
            "dedup_key", "max_attempts", "group_key", "predecessor_ids", "predecessor_positions",
            "on_predecessor_dead", "expire_seconds"]'
    );
    declare v_keys, v_key, v_value, v_type, v_topic longtext;
    declare v_at int default 0;
    declare exit handler for sqlexception
        set p_fault = concat(v_key, ' cannot be read: ', left(v_value, 40));
    set p_body = null, p_body_binary = null, p_message_type = null, p_headers = null,
        p_priority = 5, p_delay_seconds = null, p_run_at = null, p_dedup_key = null,
        p_max_attempts = null, p_group_key = null, p_predecessor_ids = null, p_positions = null,
        p_on_predecessor_dead = null, p_expire_seconds = null, p_fault = null;

    if coalesce(not json_valid(p_message), true) or json_type(p_message) <> 'OBJECT' then
        set p_fault = 'a message must be a JSON object';
    else
        set v_keys = json_keys(p_message);
    end if;

    entries: while p_fault is null and v_at < json_length(v_keys) do
        set v_key = json_unquote(json_extract(v_keys, concat('$[', v_at, ']'))), v_at = v_at + 1;
        if not json_contains(c_keys, json_quote(v_key)) then
            set p_fault = concat('unknown key ', left(v_key, 60));
            leave entries;
        end if;
        set v_value = json_extract(p_message, concat('$.', v_key));
        set v_type = json_type(v_value);
        if v_type = 'NULL' then
            iterate entries;
        end if;

        if v_key = 'body' then
            set p_body = if(v_type = 'STRING', json_unquote(v_value), v_value);
        elseif v_key = 'headers' then
            if v_type <> 'OBJECT' then
                set p_fault = 'headers must be an object';
            end if;
            set p_headers = v_value;
        elseif v_key in ('priority', 'max_attempts') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER') or char_length(v_value) > 9 then
                set p_fault = concat(v_key, ' must be an integer, got ', left(v_value, 40));
            elseif v_key = 'priority' then
                set p_priority = v_value;
            else
                set p_max_attempts = v_value;
            end if;
        elseif v_key in ('delay_seconds', 'expire_seconds') then
            if v_type not in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL') then
                set p_fault = concat(v_key, ' must be a number');
            elseif v_key = 'delay_seconds' then
                set p_delay_seconds = v_value;
            else
                set p_expire_seconds = v_value;
            end if;
        elseif v_key = 'predecessor_ids' then
            set p_predecessor_ids = v_value;
        elseif v_key = 'predecessor_positions' then
            set p_positions = v_value;
        elseif v_type <> 'STRING' then
            set p_fault = concat(v_key, ' must be a string');
        elseif v_key = 'message_type' then
            set p_message_type = json_unquote(v_value);
        elseif v_key = 'dedup_key' then
            set p_dedup_key = json_unquote(v_value);
        elseif v_key = 'group_key' then
            set p_group_key = json_unquote(v_value);
        elseif v_key = 'on_predecessor_dead' then
            set p_on_predecessor_dead = json_unquote(v_value);
        elseif v_key = 'topic' then
            set v_topic = json_unquote(v_value);
        elseif v_key = 'body_base64' then
            set p_body_binary = from_base64(json_unquote(v_value));
            if p_body_binary is null then
                set p_fault = 'body_base64 is not base64';
            end if;
        else
            call rowq.internal_parse_moment(json_unquote(v_value), p_run_at);
            if p_run_at is null then
                set p_fault = concat('run_at is no moment: ', left(json_unquote(v_value), 40));
            end if;
        end if;
    end while;

    if p_is_published and p_fault is null then
        call rowq.internal_topic_fault('topic', v_topic, false, p_fault);
        set p_message_type = coalesce(p_message_type, v_topic);
    end if;
    if p_fault is null then
        call rowq.internal_message_fault(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
            p_run_at, p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
            p_on_predecessor_dead, p_expire_seconds, p_max_body_length, p_fault
        );
    end if;
end//
delimiter ;

-- [file internal/parse_moment.sql]
drop procedure if exists rowq.internal_parse_moment;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_parse_moment(p_text longtext, out p_moment datetime(6))
sql security definer
no sql
begin
-- routine   internal_parse_moment
-- purpose   Read a moment in ISO 8601, UTC without a zone; null when it is none.
-- promise   P15
    -- The patterns mean the same whatever default_regex_flags says.
    declare v_zone varchar(6) default coalesce(
        regexp_substr(p_text, '(Z|[+-][0-9]{2}:?[0-9]{2})\\z'), ''
    );
    declare v_minutes int default 0;
    set p_moment = null;

    if p_text regexp concat(
        '\\A[0-9]{4}-[0-9]{2}-[0-9]{2}[T\\x20][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,6})?)?',
        '(Z|[+-][0-9]{2}:?[0-9]{2})?\\z'
    ) then
        set p_moment = cast(
            replace(left(p_text, char_length(p_text) - char_length(v_zone)), 'T', ' ')
            as datetime(6)
        );
        if char_length(v_zone) > 1 then
            set v_minutes = substr(v_zone, 2, 2) * 60 + right(v_zone, 2);
            set p_moment = p_moment
                - interval if(left(v_zone, 1) = '-', -v_minutes, v_minutes) minute;
        end if;
    end if;
end//
delimiter ;

-- [file internal/pass_group.sql]
drop procedure if exists rowq.internal_pass_group;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pass_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_is_over boolean,
    p_owns_transaction boolean,
    out p_next varchar(60),
    out p_is_left boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_pass_group
-- purpose   Pass one token of a group on to its next message, or give it back. p_next is that message as [message_id, lane, attempt], for the caller to make ready; p_is_left says that nothing can be done now.
-- promise   P21 P22 P23 P24
-- locks     grouped and message_group rows, tried only
    declare v_limit, v_lowest_no, v_highest_no, v_token_no int;
    declare v_pause double;
    declare v_first_id, v_message_id bigint;
    declare v_lane smallint;

    set p_next = null, p_is_left = false;

    select q.group_limit, q.group_pause_seconds, min(t.token_no), max(t.token_no)
    into v_limit, v_pause, v_lowest_no, v_highest_no
    from rowq.queue q
    left join rowq.message_group t force index (primary)
        on t.part_id = q.part_id
       and t.group_key = p_group_key
    where q.part_id = p_part_id;

    token: begin
        if v_pause > 0 and not p_is_over then
            set p_is_left = true;
            leave token;
        end if;

        -- To give a token back wants a look that sees what was committed since the one before. In
        -- the caller's transaction nobody knows whether it would, because the isolation level of
        -- one transaction stands in no variable.
        if p_owns_transaction and v_highest_no > v_limit and v_lowest_no <= v_limit then
            -- A token beyond a limit that was lowered is given back.
            select t.token_no into v_token_no
            from rowq.message_group t force index (primary)
            where t.part_id = p_part_id
              and t.group_key = p_group_key
              and t.token_no > v_limit
            order by t.part_id, t.group_key, t.token_no
            limit 1
            for update skip locked;
            if v_token_no is not null then
                delete from rowq.message_group
                where part_id = p_part_id
                  and group_key = p_group_key
                  and token_no = v_token_no;
                leave token;
            end if;
        end if;

        looks: loop
            -- Find the first message that waits without locks, then lock it by its whole key, so
            -- that no gap is locked.
            set v_first_id = null, v_message_id = null;
            select g.message_id, g.lane into v_first_id, v_lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key = p_group_key
            order by g.part_id, g.group_key, g.message_id
            limit 1;
            if v_first_id is not null then
                leave looks;
            elseif not p_owns_transaction then
                set p_is_left = true;
                leave token;
            elseif v_token_no is not null then
                delete from rowq.message_group
                where part_id = p_part_id
                  and group_key = p_group_key
                  and token_no = v_token_no;
                leave token;
            end if;

            -- Nobody waits. Where a token can be locked, nobody is coming either, and who was
            -- coming a moment ago is there by now, so look once more.
            select t.token_no into v_token_no
            from rowq.message_group t force index (primary)
            where t.part_id = p_part_id
              and t.group_key = p_group_key
            order by t.part_id desc, t.group_key desc, t.token_no desc
            limit 1
            for update skip locked;
            if v_token_no is null then
                set p_is_left = true;
                leave token;
            end if;
        end loop;

        select g.message_id into v_message_id
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
          and g.message_id = v_first_id
        for update skip locked;
        if v_message_id is null and p_owns_transaction and v_limit > 1 then
            -- With a limit of 1 nobody is taken instead, because a message that is being cancelled
            -- may stay, and must not be overtaken.
            select g.message_id, g.lane into v_message_id, v_lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key = p_group_key
              and g.message_id > v_first_id
            order by g.part_id, g.group_key, g.message_id
            limit 1
            for update skip locked;
        end if;
        if v_message_id is null then
            set p_is_left = true;
        else
            delete from rowq.grouped
            where part_id = p_part_id
              and group_key = p_group_key
              and message_id = v_message_id;
            set p_next = concat('[', v_message_id, ',', v_lane, ',0]');
        end if;
    end;
end//
delimiter ;

-- [file internal/pick_messages.sql]
drop procedure if exists rowq.internal_pick_messages;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pick_messages(
    p_messages longtext,
    p_places longtext,
    out p_picked longtext,
    out p_picked_places longblob
)
sql security definer
modifies sql data
begin
-- routine   internal_pick_messages
-- purpose   Return the messages at these places of a batch as a batch of their own; and the places once more, five digits each, in its order, or '' where they are all.
-- promise   P20
-- differs   no such helper elsewhere: part of publish_batch
    declare v_place int;
    declare v_message, v_chunk longtext;
    declare v_is_end boolean default false;
    -- The limit makes MySQL sort what was cast to text, as in internal_store_batch.
    declare each_message cursor for
        select h.place, h.message
        from (
            select j.place, cast(j.message as char) as message
            from json_table(
                p_messages, '$[*]' columns (place for ordinality, message json path '$')
            ) j
            straight_join (
                select distinct w.place
                from json_table(p_places, '$[*]' columns (place int path '$')) w
            ) wanted on wanted.place = j.place
            limit 10000
        ) h
        order by h.place;
    declare continue handler for not found set v_is_end = true;
    set p_picked = '[', p_picked_places = '', v_chunk = '';

    if json_length(p_places) = json_length(p_messages) then
        set p_picked = p_messages;
    else
        open each_message;
        messages: loop
            fetch each_message into v_place, v_message;
            if v_is_end then
                leave messages;
            end if;
            -- Build the text in pieces, because a long one is copied each time something is added.
            set v_chunk = concat(v_chunk, if(p_picked_places = '', '', ','), v_message),
                p_picked_places = concat(p_picked_places, lpad(v_place, 5, '0'));
            if length(v_chunk) > 100000 then
                set p_picked = concat(p_picked, v_chunk), v_chunk = '';
            end if;
        end loop;
        close each_message;
        set p_picked = concat(p_picked, v_chunk, ']');
    end if;
end//
delimiter ;

-- [file internal/pin_session.sql]
drop procedure if exists rowq.internal_pin_session;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pin_session(p_moment double)
sql security definer
modifies sql data
begin
-- routine   internal_pin_session
-- purpose   Set the variables of the session that the routines depend on; p_moment was its time just before.
-- promise   P01 P03 P12
-- differs   elsewhere no session can set the clock, or the numbers that rows get
    -- The caller's values are kept in variables of the session until internal_unpin_session. A
    -- killed call leaves them there, so give them back before the values are read again.
    if @rowq_pinned then
        call rowq.internal_unpin_session();
        set p_moment = @@timestamp;
    end if;
    set @rowq_pinned = true,
        /*M!100600 @rowq_insert_id = @@insert_id, */
        @rowq_increment = @@auto_increment_increment,
        @rowq_offset = @@auto_increment_offset,
        @rowq_unique_checks = @@unique_checks,
        @rowq_safe_updates = @@sql_safe_updates,
        @rowq_big_selects = @@sql_big_selects,
        @rowq_sort_buffer_size = @@sort_buffer_size,
        /*M!100600 @rowq_max_error_count = @@max_error_count, */
        /*M!100600 @rowq_group_concat_max_len = @@group_concat_max_len, */
        /*M!100600 @rowq_tmp_disk_table_size = @@tmp_disk_table_size, */
        /*M!100600 @rowq_regex_flags = @@default_regex_flags, */
        /*M!100600 @rowq_skip_replication = @@skip_replication, */
        /*M!110602 @rowq_snapshot_isolation = @@innodb_snapshot_isolation, */
        /*!80000 @rowq_stats_expiry = @@information_schema_stats_expiry, */
        @rowq_timestamp = null;

    -- Without unique checks InnoDB locks an empty table for the first session that inserts. A sort
    -- or a temporary table with too little room fails with an error that no handler sees, so that
    -- the transaction would stay open. MySQL asks for a right to set max_error_count, which the
    -- account that the routines run as has not, and shows numbers of tables that are a day old
    -- unless told not to. What aggregates return is cut to max_allowed_packet in any case.
    set session unique_checks = 1,
        sql_safe_updates = 0,
        sql_big_selects = 1,
        /*M!100600 group_concat_max_len = greatest(@@group_concat_max_len, @@max_allowed_packet), */
        /*M!100600 tmp_disk_table_size = greatest(@@tmp_disk_table_size, 1073741824), */
        /*M!100600 default_regex_flags = '', */
        /*M!100600 max_error_count = cast(greatest(@@max_error_count, 64) as unsigned), */
        /*M!110602 innodb_snapshot_isolation = 0, */
        /*!80000 information_schema_stats_expiry = 0, */
        sort_buffer_size = cast(greatest(@@sort_buffer_size, 262144) as unsigned);

    -- Set these one by one and only where they differ, because some versions ask for a right to set
    -- them. insert_id would be the number of the next row that is inserted. A cluster sets the
    -- other two for all its sessions, so take the global values.
    /*M!100600
    if @@insert_id <> 0 then
        set session insert_id = 0;
    end if;
    */
    if @@auto_increment_increment <> @@global.auto_increment_increment then
        set session auto_increment_increment = @@global.auto_increment_increment;
    end if;
    if @@auto_increment_offset <> @@global.auto_increment_offset then
        set session auto_increment_offset = @@global.auto_increment_offset;
    end if;
    /*M!100600
    if @@skip_replication then
        set session skip_replication = 0;
    end if;
    */

    -- A clock may show the same moment twice, but not for 20 milliseconds: then the caller has set
    -- it.
    if @@timestamp = p_moment then
        do sleep(0.02);
        if @@timestamp = p_moment then
            set @rowq_timestamp = p_moment;
            set session timestamp = default;
        end if;
    end if;
end//
delimiter ;

-- [file internal/poll_result.sql]
drop procedure if exists rowq.internal_poll_result;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_poll_result(
    p_queue_name longtext,
    p_message_id bigint,
    p_until datetime(6),
    inout p_pause double,
    out p_answer longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_poll_result
-- purpose   Look once for wait_for_result: return the row of get_result as JSON object, else the pause before the next look; p_pause is passed in as the one before this look.
-- promise   P32
-- errors    RQ701 RQ711
    declare v_part_id int;
    declare v_result_seconds, v_left double;
    declare v_is_last boolean default utc_timestamp(6) >= p_until;
    declare v_state varchar(20);
    declare v_finished_at datetime(6);
    declare v_result longtext;
    declare v_last_error varchar(2000);
    set p_answer = null;

    -- Most looks need no more than the result, which is found by its key.
    select q.part_id, q.result_seconds, r.state, r.finished_at, r.result, r.last_error
    into v_part_id, v_result_seconds, v_state, v_finished_at, v_result, v_last_error
    from rowq.queue q
    left join rowq.result r force index (primary)
        on r.part_id = q.part_id
       and r.message_id = p_message_id
       and r.message_id > 0
    where q.queue_name = cast(p_queue_name as binary);
    if v_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    elseif p_message_id is null then
        call rowq.internal_refuse('message_id is missing');
    end if;

    -- The first look and the last one ask where the message is, too.
    if v_state is null and (p_pause is null or v_is_last) then
        call rowq.internal_read_result(
            v_part_id, p_message_id, v_state, v_finished_at, v_result, v_last_error
        );
        set v_is_last = v_is_last or v_state is null;
    end if;
    if v_is_last or v_finished_at is not null then
        if v_state is not null then
            set p_answer = json_object(
                'message_id', p_message_id + 0, 'state', v_state,
                'finished_at', date_format(v_finished_at, '%Y-%m-%dT%H:%i:%s.%f+00:00'),
                'result', json_extract(v_result, '$'), 'last_error', v_last_error
            );
        end if;
        set p_pause = null;
    else
        if v_result_seconds = 0 then
            call rowq.internal_refuse('the queue keeps no results: its result_seconds is 0');
        end if;
        set v_left = timestampdiff(microsecond, utc_timestamp(6), p_until) / 1000000,
            p_pause = least(coalesce(p_pause * 2, 0.02), 0.25, greatest(v_left, 0));
    end if;
end//
delimiter ;

-- [file internal/pop_blocked.sql]
drop procedure if exists rowq.internal_pop_blocked;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_blocked(
    p_part_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_blocked
-- purpose   Take messages out that wait for others, by their ids; return those that nobody holds, and their ids.
-- promise   P03
-- locks     blocked rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select b.message_id, b.lane
        from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = j.message_id
        for update /*!80000 of b */ skip locked
    ) h;
    delete b
    from json_table(p_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
end//
delimiter ;

-- [file internal/pop_claimed.sql]
drop procedure if exists rowq.internal_pop_claimed;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_claimed(
    p_part_id int,
    p_claim_id bigint,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_is_keyed boolean,
    out p_messages longtext,
    out p_cancel_ids longtext,
    out p_worker_name varchar(200),
    out p_leased_at datetime(6)
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_claimed
-- purpose   Take messages out of a claim: those asked for that it still holds, or all of them; null when there is none. p_is_keyed is false where none has a dedup key; p_cancel_ids are those of them that were cancelled, null where there is none; p_worker_name and p_leased_at are of the lease.
-- promise   P08
-- locks     the claim row, first of all
-- errors    RQ721
-- differs   a claim holds its messages as a range of ids or as a JSON array
    declare v_claim_id bigint default p_claim_id;
    declare v_held, v_kept, v_noted, v_kept_noted longtext;
    declare v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at int;
    declare v_id, v_place varchar(40);
    set p_messages = null, p_cancel_ids = null;

    if not p_owns_transaction then
        call rowq.internal_bound_gap(p_part_id, v_claim_id);
    end if;
    -- A locking read by the whole key finds the row as it is now, even under an old snapshot.
    select c.is_keyed, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
           c.cancel_ids, c.worker_name, c.leased_at
    into p_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_held, v_noted, p_worker_name,
         p_leased_at
    from rowq.claim c force index (primary)
    where c.part_id = p_part_id
      and c.claim_id = v_claim_id
      and c.claim_id > 0
    for update;
    if v_held is null and v_first_id is not null then
        call rowq.internal_expand_range(v_first_id, v_last_id, v_lane, v_attempt, v_held);
    end if;
    if v_held is null and p_message_ids is null then
        call rowq.internal_refuse_claim(p_claim_id);
    end if;

    if p_message_ids is null then
        set p_messages = v_held;
    elseif json_length(p_message_ids) = 1 then
        -- Find one message by the text of its id. The number of entries before that text is its
        -- place in the array.
        set v_id = trim(leading '0' from json_value(p_message_ids, '$[0]'));
        set v_at = locate(concat('[', v_id, ','), v_held);
        if v_at > 0 then
            set v_place = concat('$[', json_length(concat(left(v_held, v_at - 1), '0]')) - 1, ']');
            set p_messages = concat('[', json_extract(v_held, v_place), ']');
            if json_length(v_held) > 1 then
                set v_kept = json_remove(v_held, v_place);
            end if;
        end if;
    elseif v_held is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_messages
        from json_table(
            v_held,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct a.message_id
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = j.message_id;
        if json_length(p_messages) < json_length(v_held) then
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_kept
            from json_table(
                v_held,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            left join (
                select distinct a.message_id
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
            ) w on w.message_id = j.message_id
            where w.message_id is null;
        end if;
    end if;

    if v_noted is not null then
        select json_arrayagg(n.message_id) into p_cancel_ids
        from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) n
        straight_join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) w on w.message_id = n.message_id;
        select json_arrayagg(n.message_id) into v_kept_noted
        from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) n
        left join (
            select distinct j.message_id
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        ) w on w.message_id = n.message_id
        where w.message_id is null;
    end if;

    if v_kept is not null then
        update rowq.claim c force index (primary)
        set c.messages = v_kept,
            c.cancel_ids = v_kept_noted
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    elseif p_messages is not null then
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = p_claim_id;
    end if;
end//
delimiter ;

-- [file internal/pop_expired.sql]
drop procedure if exists rowq.internal_pop_expired;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_expired(
    p_part_id int,
    p_due longtext,
    out p_messages longtext,
    out p_tokenless longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where internal_expire saw them, unless another session holds them. p_tokenless are those without a token of a group.
-- promise   P03 P36
-- locks     message rows, their dedup rows, then blocked, delayed, grouped and ready rows, all of
--           them tried only
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_free, v_seen, v_some, v_more longtext;
    declare v_keyed int;
    set p_messages = null, p_tokenless = '[]';

    -- Several notes may say the same of one message.
    select json_arrayagg(json_array(h.message_id, h.lane, h.seq, h.place, h.due_at))
    into v_seen
    from (
        select j.message_id, max(j.lane) as lane, max(j.seq) as seq, max(j.place) as place,
               max(j.due_at) as due_at
        from json_table(
            p_due,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                seq bigint path '$[2]',
                place varchar(20) path '$[3]',
                due_at bigint path '$[6]'
            )
        ) j
        where j.place <> 'later'
        group by j.message_id
    ) h;
    -- The end of a message waits for a producer that has just named it as a predecessor, and
    -- maintain must not.
    if v_seen is not null then
        select json_arrayagg(
                   json_array(h.message_id, h.lane, h.seq, h.place, h.due_at, h.is_keyed)
               ),
               sum(h.is_keyed)
        into v_free, v_keyed
        from (
            select j.message_id, j.lane, j.seq, j.place, j.due_at,
                   m.dedup_key is not null as is_keyed
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[2]',
                    place varchar(20) path '$[3]',
                    due_at bigint path '$[4]'
                )
            ) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            for update /*!80000 of m */ skip locked
        ) h;
    end if;

    -- It waits, too, for a producer that holds the dedup key since it was told of a duplicate. A
    -- message that is in one of the places has its key.
    if v_keyed > 0 then
        select json_arrayagg(h.message_id) into v_some
        from (
            select k.message_id
            from json_table(
                v_free, '$[*]' columns (message_id bigint path '$[0]', is_keyed int path '$[5]')
            ) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            straight_join rowq.dedup k force index (primary)
                on k.part_id = p_part_id
               and k.dedup_key = m.dedup_key
            where j.is_keyed
            for update /*!80000 of m, k */ skip locked
        ) h;
        if coalesce(json_length(v_some), 0) < v_keyed then
            select json_arrayagg(
                       json_array(j.message_id, j.lane, j.seq, j.place, j.due_at)
                   )
            into v_more
            from json_table(
                v_free,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[2]',
                    place varchar(20) path '$[3]',
                    due_at bigint path '$[4]',
                    is_keyed int path '$[5]'
                )
            ) j
            left join (
                select distinct a.message_id
                from json_table(v_some, '$[*]' columns (message_id bigint path '$')) a
            ) o on o.message_id = j.message_id
            where not j.is_keyed
               or o.message_id is not null;
            set v_free = v_more;
        end if;
    end if;

    if locate('"blocked"', v_free) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_free,
            '$[*]' columns (message_id bigint path '$[0]', place varchar(20) path '$[3]')
        ) j
        where j.place = 'blocked';
        call rowq.internal_pop_blocked(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"delayed"', v_free) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_free,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    place varchar(20) path '$[3]',
                    due_at bigint path '$[4]'
                )
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = v_epoch + interval j.due_at microsecond
               and d.message_id = j.message_id
            where j.place = 'delayed'
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"grouped"', v_free) > 0 then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(
            v_free,
            '$[*]' columns (message_id bigint path '$[0]', place varchar(20) path '$[3]')
        ) j
        where j.place = 'grouped';
        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(p_tokenless, coalesce(v_more, '[]'));
    end if;

    if locate('"ready"', v_free) > 0 then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_free,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[2]',
                    place varchar(20) path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.part_id = p_part_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            where j.place = 'ready'
            for update /*!80000 of r */ skip locked
        ) h;
        if v_some is not null then
            call rowq.internal_delete_ready(p_part_id, v_some);
            set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), v_some);
        end if;
    end if;
    if p_messages = '[]' then
        set p_messages = null;
    end if;
end//
delimiter ;

-- [file internal/pop_grouped.sql]
drop procedure if exists rowq.internal_pop_grouped;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_grouped(
    p_part_id int,
    p_seen longtext,
    out p_messages longtext,
    out p_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_grouped
-- purpose   Take messages out of their groups, by their ids; return those that nobody holds, and their ids.
-- promise   P03
-- locks     grouped rows, passing over locked ones
-- differs   no such helper elsewhere: part of purge_queue and internal_pop_waiting
    declare v_rest, v_slice, v_keys longtext;

    -- Keys are read where they are needed, because no text holds those of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)), json_arrayagg(h.message_id)
    into p_messages, p_ids
    from (
        select g.message_id, g.lane
        from (
            select m.message_id, m.group_key
            from json_table(p_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
        ) k
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = k.group_key
           and g.message_id = k.message_id
        for update /*!80000 of g */ skip locked
    ) h;
    -- Read the keys before the delete, which would lock the rows of message, too, and wait for a
    -- producer that has just named one of them.
    set v_rest = p_messages;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        select json_arrayagg(json_array(m.message_id, hex(m.group_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        delete g
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', group_key varchar(1600) path '$[1]')
        ) j
        straight_join rowq.grouped g force index (primary)
            on g.part_id = p_part_id
           and g.group_key = unhex(j.group_key)
           and g.message_id = j.message_id;
    end while;
end//
delimiter ;

-- [file internal/pop_ready.sql]
drop procedure if exists rowq.internal_pop_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_ready(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_ready
-- purpose   Take up to p_limit messages from the lanes, best lane first; null when there is none.
-- promise   P05 P06 P13
-- locks     ready rows, passing over locked ones; rows of lanes, too
    declare v_left int default p_limit;
    declare v_lane smallint default -32768;
    declare v_is_hidden boolean default false;
    declare v_next, v_probe smallint;
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_some longtext;
    set p_messages = null;

    lanes: while v_left > 0 do
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Look into closed lanes too: there are messages, but an open transaction keeps others
            -- from opening the lanes.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;
        set v_lane = v_next;

        -- Look without locks first, so that an empty lane costs no write and its fence rows are not
        -- locked. Only "select ... into" takes no locks: exists() or a subquery in "set" would wait
        -- for open producers.
        set v_probe = null;
        select r.attempt into v_probe
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.part_id, r.lane, r.seq, r.message_id
        limit 1;
        if v_probe is null then
            iterate lanes;
        end if;

        call rowq.internal_lock_ready(
            p_part_id, v_lane, v_floor, v_left, p_owns_transaction, v_some
        );
        if v_some is null then
            iterate lanes;
        end if;
        set v_left = v_left - json_length(v_some), v_first = json_extract(v_some, '$[0][3]');

        delete r
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', seq bigint path '$[3]')
        ) j
        straight_join rowq.ready r force index (primary)
            on r.part_id = p_part_id
           and r.lane = v_lane
           and r.seq = j.seq
           and r.message_id = j.message_id;
        set p_messages = if(
            p_messages is null, v_some, json_merge_preserve(p_messages, v_some)
        );

        -- Moving the floor costs a write, so only one dequeue in twelve does it. A dequeue in the
        -- caller's transaction never does, because it would hold the row for long and may read an
        -- old snapshot.
        if p_owns_transaction and rand() < 0.08 then
            -- Stop below a row that another session has taken but not committed: a rollback puts it
            -- back.
            call rowq.internal_first_key(p_part_id, v_lane, v_floor, v_seen);
            set v_to = least(
                v_first, coalesce(v_seen, v_first),
                timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
            );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_part_id, v_lane, v_floor, v_to);
            end if;
        end if;
    end while;
end//
delimiter ;

-- [file internal/pop_waiting.sql]
drop procedure if exists rowq.internal_pop_waiting;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_pop_waiting(
    p_part_id int,
    p_message_ids longtext,
    out p_messages longtext,
    out p_tokenless longtext,
    out p_keyless longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_pop_waiting
-- purpose   Take messages out of wherever they wait; those that a worker holds stay. p_tokenless are those without a token of a group, and p_keyless those that were dead, null where none was.
-- promise   P03
-- locks     blocked, delayed, dead, grouped and ready rows, passing over locked ones
-- differs   PostgreSQL finds delayed messages by their ids
    declare v_ids, v_seen, v_more, v_some, v_rest longtext;
    set p_messages = null, p_tokenless = '[]', p_keyless = null;

    -- Find rows without locks, then lock them by their whole keys: under the caller's REPEATABLE
    -- READ, a lock on a key that is not there would cover the gap around it and make producers
    -- wait.
    select json_arrayagg(h.message_id) into v_ids
    from (
        select distinct a.message_id
        from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) a
        where a.message_id > 0
        order by a.message_id
    ) h;

    -- A message that waits for others goes to each of the other places from there, so look for it
    -- first.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_blocked(p_part_id, v_seen, p_messages, p_tokenless);
    end if;

    select json_arrayagg(d.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.dead d force index (primary)
        on d.part_id = p_part_id
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)),
               json_arrayagg(if(h.holds_group, null, h.message_id)),
               json_arrayagg(h.message_id)
        into v_some, v_more, p_keyless
        from (
            select d.message_id, d.lane, d.attempt, d.holds_group
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(v_some, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.dead d force index (primary)
            on d.part_id = p_part_id
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- Find a delayed message by message.due_at, which is its place in delayed.
    select json_arrayagg(
               json_array(d.message_id, timestampdiff(microsecond, '1970-01-01', d.due_at))
           )
    into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.delayed d force index (primary)
        on d.part_id = p_part_id
       and d.due_at = m.due_at
       and d.message_id = j.message_id;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.due_at)),
               json_arrayagg(if(h.group_key is null, null, h.message_id))
        into v_some, v_more
        from (
            select d.message_id, d.lane, d.attempt, d.group_key, j.due_at
            from json_table(
                v_seen, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[1]')
            ) j
            straight_join rowq.delayed d force index (primary)
                on d.part_id = p_part_id
               and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
               and d.message_id = j.message_id
            for update /*!80000 of d */ skip locked
        ) h;
        delete d
        from json_table(
            v_some, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = timestamp'1970-01-01 00:00:00' + interval j.due_at microsecond
           and d.message_id = j.message_id;
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- A message goes from its group to the ready ones, so look for it there first.
    select json_arrayagg(g.message_id) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.grouped g force index (primary)
        on g.part_id = p_part_id
       and g.group_key = m.group_key
       and g.message_id = j.message_id;
    if v_seen is not null then
        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_more);
        set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), coalesce(v_some, '[]')),
            p_tokenless = json_merge_preserve(coalesce(p_tokenless, '[]'), coalesce(v_more, '[]'));
    end if;

    -- A message that was never given back is in the tail lane of its priority, where its seq is the
    -- moment of its enqueued_at. Name the lanes by a join: MariaDB would look through all ready
    -- messages for each id if they stood in a list. The others that have a body are looked for
    -- among all ready messages.
    select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_seen
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    straight_join rowq.lane l force index (primary)
        on l.part_id = p_part_id
       and l.lane in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19)
       and l.is_open
    straight_join rowq.ready r force index (primary)
        on r.part_id = p_part_id
       and r.lane = l.lane
       and r.seq = timestampdiff(microsecond, '1970-01-01', m.enqueued_at)
       and r.message_id = j.message_id;
    set v_seen = coalesce(v_seen, '[]');
    select json_arrayagg(j.message_id) into v_rest
    from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    left join (
        select distinct a.message_id
        from json_table(
            json_merge_preserve(coalesce(p_messages, '[]'), v_seen),
            '$[*]' columns (message_id bigint path '$[0]')
        ) a
    ) f on f.message_id = j.message_id
    where m.part_id = p_part_id
      and f.message_id is null;
    if v_rest is not null then
        select json_arrayagg(json_array(r.message_id, r.lane, r.attempt, r.seq)) into v_more
        from rowq.ready r force index (primary)
        straight_join (
            select distinct a.message_id
            from json_table(v_rest, '$[*]' columns (message_id bigint path '$')) a
        ) w on w.message_id = r.message_id
        where r.part_id = p_part_id
          and r.lane >= 0
          and r.message_id > 0;
        set v_seen = json_merge_preserve(v_seen, coalesce(v_more, '[]'));
    end if;
    if v_seen <> '[]' then
        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt, h.seq)) into v_some
        from (
            select r.message_id, r.lane, r.attempt, r.seq
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    seq bigint path '$[3]'
                )
            ) j
            straight_join rowq.ready r force index (primary)
                on r.part_id = p_part_id
               and r.lane = j.lane
               and r.seq = j.seq
               and r.message_id = j.message_id
            for update /*!80000 of r */ skip locked
        ) h;
        if v_some is not null then
            call rowq.internal_delete_ready(p_part_id, v_some);
            set p_messages = json_merge_preserve(coalesce(p_messages, '[]'), v_some);
        end if;
    end if;
    if p_messages = '[]' then
        set p_messages = null;
    end if;
end//
delimiter ;

-- [file internal/promote.sql]
drop procedure if exists rowq.internal_promote;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_promote(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    out p_promoted int
)
sql security definer
modifies sql data
begin
-- routine   internal_promote
-- purpose   Move up to p_limit due messages to the tails of their lanes, or into their groups, earliest first.
-- promise   P11 P21
-- locks     delayed rows, passing over locked ones; new ready rows; as internal_try_enter_group
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_floor, v_first, v_seen, v_to bigint;
    declare v_since, v_now datetime(6);
    declare v_probe smallint;
    declare v_messages longtext;
    declare v_joined int default 0;
    set p_promoted = 0;

    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -2;
    set v_since = v_epoch + interval v_floor microsecond, v_now = utc_timestamp(6);

    select d.attempt into v_probe
    from rowq.delayed d force index (primary)
    where d.part_id = p_part_id
      and d.due_at >= v_since
      and d.due_at <= v_now
    order by d.part_id, d.due_at, d.message_id
    limit 1;
    if v_probe is not null then
        call rowq.internal_lock_due(p_part_id, v_since, p_limit, v_messages);
    end if;

    if v_messages is not null then
        set v_first = json_extract(v_messages, '$[0][3]');
        select count(j.group_key) into v_joined
        from json_table(v_messages, '$[*]' columns (group_key varchar(1600) path '$[4]')) j;
        if v_joined > 0 then
            call rowq.internal_promote_grouped(
                p_part_id, p_owns_transaction, v_messages, v_joined
            );
        end if;
        set p_promoted = v_joined;
    end if;

    if v_messages is not null then
        delete d
        from json_table(
            v_messages, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
        straight_join rowq.delayed d force index (primary)
            on d.part_id = p_part_id
           and d.due_at = v_epoch + interval j.due_at microsecond
           and d.message_id = j.message_id;
        call rowq.internal_push_ready(p_part_id, v_messages);
        set p_promoted = p_promoted + json_length(v_messages);

        if p_owns_transaction and rand() < 0.08 * p_promoted then
            call rowq.internal_first_key(p_part_id, -2, v_floor, v_seen);
            set v_to = least(
                    v_first, coalesce(v_seen, v_first),
                    timestampdiff(microsecond, '1970-01-01', v_now) - 500000
                );
            if v_to > v_floor then
                call rowq.internal_move_floor(p_part_id, -2, v_floor, v_to);
            end if;
        end if;
    end if;
end//
delimiter ;

-- [file internal/promote_grouped.sql]
drop procedure if exists rowq.internal_promote_grouped;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_promote_grouped(
    p_part_id int,
    p_owns_transaction boolean,
    inout p_messages longtext,
    out p_joined int
)
sql security definer
modifies sql data
begin
-- routine   internal_promote_grouped
-- purpose   Let due messages join their groups, as internal_lock_due returns them: p_messages are afterwards those for the caller to make ready, p_joined is how many of the others wait in their groups now.
-- promise   P11 P21 P22
-- locks     delayed rows, locked by the caller; as internal_try_enter_group; new grouped rows
-- differs   no such helper elsewhere: part of internal_promote
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_due_at, v_later datetime(6);
    declare v_message_id, v_free_id bigint;
    declare v_lane smallint;
    declare v_group_key varbinary(800);
    declare v_has_token boolean;
    declare v_is_late, v_is_end boolean default false;
    declare v_others longtext;
    declare each_message cursor for
        select j.message_id, j.lane, v_epoch + interval j.due_at microsecond, unhex(j.group_key)
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                due_at bigint path '$[3]',
                group_key varchar(1600) path '$[4]'
            )
        ) j
        where j.group_key is not null
        order by j.place;
    declare continue handler for not found set v_is_end = true;
    set p_joined = 0;

    open each_message;
    messages: loop
        fetch each_message into v_message_id, v_lane, v_due_at, v_group_key;
        if v_is_end then
            leave messages;
        end if;
        -- Wait for a producer once a call, and no longer than a moment.
        set v_has_token = null;
        if not v_is_late then
            call rowq.internal_try_enter_group(
                p_part_id, v_group_key, p_owns_transaction, v_has_token
            );
        end if;
        set v_is_end = false;
        if v_has_token then
            iterate messages;
        end if;

        set v_others = concat_ws(',', v_others, v_message_id);
        if v_has_token is null then
            set v_is_late = true;
            if p_owns_transaction then
                -- A producer that has named the message as a predecessor holds its row, perhaps.
                set v_free_id = null;
                select m.message_id into v_free_id
                from rowq.message m force index (primary)
                where m.message_id = v_message_id
                for update skip locked;
                set v_is_end = false;
                if v_free_id is not null then
                    set v_later = utc_timestamp(6) + interval 500000 microsecond;
                    update rowq.delayed d force index (primary)
                    set d.due_at = v_later
                    where d.part_id = p_part_id
                      and d.due_at = v_due_at
                      and d.message_id = v_message_id;
                    update rowq.message m force index (primary)
                    set m.due_at = v_later
                    where m.message_id = v_message_id;
                end if;
            end if;
        else
            delete from rowq.delayed
            where part_id = p_part_id
              and due_at = v_due_at
              and message_id = v_message_id;
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, v_message_id, v_lane);
            set p_joined = p_joined + 1;
        end if;
    end loop;
    close each_message;

    if v_others is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.due_at)) into p_messages
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                due_at bigint path '$[3]'
            )
        ) j
        left join (
            select distinct o.message_id
            from json_table(
                concat('[', v_others, ']'), '$[*]' columns (message_id bigint path '$')
            ) o
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;
end//
delimiter ;

-- [file internal/purge_archive.sql]
drop procedure if exists rowq.internal_purge_archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_archive(
    p_part_id int,
    p_before datetime(6),
    p_limit int,
    p_owns_transaction boolean,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_archive
-- purpose   Delete a queue's archived messages that finished before p_before.
-- promise   P19
-- locks     archive rows
    declare v_keep_from datetime(6) default '1970-01-01';
    -- Rows that are too old for every queue go with their partition, so leave them here. In the
    -- caller's transaction no partition is dropped, so delete them all.
    if p_owns_transaction then
        select date(utc_timestamp(6) - interval max(q.archive_days) day) into v_keep_from
        from rowq.queue q;
    end if;

    delete from rowq.archive
    where part_id = p_part_id
      and finished_at >= v_keep_from
      and finished_at < p_before
    order by part_id, finished_at, message_id
    limit p_limit;
    set p_purged = row_count();
end//
delimiter ;

-- [file internal/purge_blocked.sql]
drop procedure if exists rowq.internal_purge_blocked;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_blocked(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_blocked
-- purpose   Delete up to p_limit messages that wait for others to end; null means all.
-- promise   P15
-- locks     blocked rows, passing over locked ones; message and dedup rows
-- differs   no such helper elsewhere: part of purge_queue
    declare c_step int default 5000;
    declare v_after bigint default 0;
    declare v_step int;
    declare v_seen, v_some, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
        select json_arrayagg(h.message_id), max(h.message_id) into v_seen, v_after
        from (
            select b.message_id, b.lane
            from rowq.blocked b force index (primary)
            where b.part_id = p_part_id
              and b.message_id > v_after
            order by b.part_id, b.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;

        call rowq.internal_pop_blocked(p_part_id, v_seen, v_some, v_ids);
        if v_some is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_some, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_some);
        end if;
    end loop;
end//
delimiter ;

-- [file internal/purge_grouped.sql]
drop procedure if exists rowq.internal_purge_grouped;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_grouped(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_grouped
-- purpose   Delete up to p_limit messages that wait in groups; null means all.
-- promise   P15
-- locks     grouped rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after varbinary(800) default '';
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_seen, v_some, v_ids longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave steps;
        end if;
        -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
        select json_arrayagg(h.message_id) into v_seen
        from (
            select g.group_key, g.message_id, g.lane
            from rowq.grouped g force index (primary)
            where g.part_id = p_part_id
              and g.group_key >= v_after
              and g.group_key < x'FF'
              and (g.group_key > v_after or g.message_id > v_after_id)
            order by g.part_id, g.group_key, g.message_id
            limit v_step
        ) h;
        if v_seen is null then
            leave steps;
        end if;
        set v_after_id = json_extract(v_seen, concat('$[', json_length(v_seen) - 1, ']'));
        select m.group_key into v_after
        from rowq.message m force index (primary)
        where m.message_id = v_after_id;

        call rowq.internal_pop_grouped(p_part_id, v_seen, v_some, v_ids);
        if v_some is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_some, v_ids, null, p_owns_transaction, 'cancelled'
            );
            set p_removed = p_removed + json_length(v_some);
        end if;
    end loop;
end//
delimiter ;

-- [file internal/purge_history.sql]
drop procedure if exists rowq.internal_purge_history;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_history(
    p_part_id int,
    p_days int,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_history
-- purpose   Delete up to p_limit attempts that ended more than p_days ago; return how many.
-- promise   P13 P37
-- locks     a row of lane, passed over when locked, which elects who purges; history rows,
--           passing over locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval p_days day;
    declare v_latest bigint default timestampdiff(
        microsecond, v_epoch, least(v_before, v_now - interval 500000 microsecond)
    );
    declare v_floor, v_first bigint;
    declare v_since datetime(6);
    declare v_seen, v_old longtext;
    set p_purged = 0;

    -- Read the floor as it is now: an old snapshot of the caller's transaction may show rows that
    -- other sessions have purged, and a lock on one of these would cover the gap around it.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -10
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- longer list might be cut off at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(
                   json_array(
                       h.message_id, timestampdiff(microsecond, '1970-01-01', h.ended_at),
                       h.claim_id
                   )
               )
        into v_seen
        from (
            select k.message_id, k.ended_at, k.claim_id, k.outcome
            from rowq.history k force index (primary)
            where k.part_id = p_part_id
              and k.ended_at >= v_since
              and k.ended_at < v_before
            order by k.part_id, k.ended_at, k.message_id, k.claim_id
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(json_array(h.message_id, h.ended_at, h.claim_id)) into v_old
        from (
            select j.message_id, j.ended_at, j.claim_id
            from json_table(
                v_seen,
                '$[*]' columns (
                    message_id bigint path '$[0]',
                    ended_at bigint path '$[1]',
                    claim_id bigint path '$[2]'
                )
            ) j
            straight_join rowq.history k force index (primary)
                on k.part_id = p_part_id
               and k.ended_at = v_epoch + interval j.ended_at microsecond
               and k.message_id = j.message_id
               and k.claim_id = j.claim_id
            where k.outcome is not null
            for update /*!80000 of k */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete h
        from json_table(
            v_old,
            '$[*]' columns (
                message_id bigint path '$[0]',
                ended_at bigint path '$[1]',
                claim_id bigint path '$[2]'
            )
        ) j
        straight_join rowq.history h force index (primary)
            on h.part_id = p_part_id
           and h.ended_at = v_epoch + interval j.ended_at microsecond
           and h.message_id = j.message_id
           and h.claim_id = j.claim_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_part_id, -10, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -10, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

-- [file internal/purge_ready.sql]
drop procedure if exists rowq.internal_purge_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_ready(
    p_part_id int,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_ready
-- purpose   Delete up to p_limit ready messages, lane by lane; null means all.
-- promise   P15
-- locks     ready rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_lane smallint default 0;
    declare v_from bigint default 0;
    declare v_step int;
    declare v_messages longtext;
    set p_removed = 0;

    lanes: while v_lane < 20 do
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step));
        if v_step <= 0 then
            leave lanes;
        end if;
        call rowq.internal_lock_ready(
            p_part_id, v_lane, v_from, v_step, p_owns_transaction, v_messages
        );
        if v_messages is null then
            set v_lane = v_lane + 1, v_from = 0;
            iterate lanes;
        end if;
        -- Go on from the last row and not from the start, where the index still has the rows
        -- deleted so far.
        set v_from = json_extract(
            v_messages, concat('$[', json_length(v_messages) - 1, '][3]')
        );
        call rowq.internal_delete_ready(p_part_id, v_messages);
        call rowq.internal_finish(
            p_part_id, 0, true, v_messages, null, null, p_owns_transaction, 'cancelled'
        );
        set p_removed = p_removed + json_length(v_messages);
    end while;
end//
delimiter ;

-- [file internal/purge_results.sql]
drop procedure if exists rowq.internal_purge_results;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_results(
    p_part_id int,
    p_seconds double,
    p_limit int,
    out p_purged int
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_results
-- purpose   Delete up to p_limit results of messages that ended more than p_seconds ago; return how many.
-- promise   P13 P32
-- locks     a row of lane, passed over when locked, which elects who purges; result rows, passing
--           over locked ones
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_before datetime(6) default v_now - interval round(p_seconds * 1000000) microsecond;
    declare v_latest bigint default timestampdiff(
        microsecond, v_epoch, least(v_before, v_now - interval 500000 microsecond)
    );
    declare v_floor, v_first bigint;
    declare v_since datetime(6);
    declare v_seen, v_old longtext;
    set p_purged = 0;

    -- Read the floor as it is now: an old snapshot of the caller's transaction may show rows that
    -- other sessions have purged, and a lock on one of these would cover the gap around it.
    select l.floor into v_floor
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -9
    for update skip locked;
    set v_since = v_epoch + interval v_floor microsecond;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- longer list might be cut off at group_concat_max_len.
    if v_since is not null then
        select json_arrayagg(h.message_id) into v_seen
        from (
            select r.message_id, r.state
            from rowq.result r force index (result_finished_ix)
            where r.part_id = p_part_id
              and r.finished_at >= v_since
              and r.finished_at < v_before
            order by r.part_id, r.finished_at
            limit p_limit
        ) h;
    end if;
    if v_seen is not null then
        select json_arrayagg(h.message_id) into v_old
        from (
            select r.message_id, r.state
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.result r force index (primary)
                on r.part_id = p_part_id
               and r.message_id = j.message_id
            where r.finished_at < v_before
            for update /*!80000 of r */ skip locked
        ) h;
    end if;

    if v_old is not null then
        delete r
        from json_table(v_old, '$[*]' columns (message_id bigint path '$')) j
        straight_join rowq.result r force index (primary)
            on r.part_id = p_part_id
           and r.message_id = j.message_id;
        set p_purged = row_count();
        call rowq.internal_first_key(p_part_id, -9, v_floor, v_first);
        set v_first = least(v_first, v_latest);
        if v_first > v_floor then
            call rowq.internal_move_floor(p_part_id, -9, v_floor, v_first);
        end if;
    end if;
end//
delimiter ;

-- [file internal/purge_started.sql]
drop procedure if exists rowq.internal_purge_started;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_started(p_part_id int, p_seconds double, p_limit int)
sql security definer
modifies sql data
begin
-- routine   internal_purge_started
-- purpose   Delete up to p_limit notes, 10000 at most, of deliveries that began more than p_seconds ago.
-- promise   P13 P29
-- locks     started rows
    -- A longer list might be cut off at group_concat_max_len.
    declare v_limit int default least(p_limit, 10000);
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6) default
        utc_timestamp(6) - interval round(p_seconds * 1000000) microsecond;
    declare v_since datetime(6);
    declare v_old longtext;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -6;
    -- Find rows without locks, then delete them by their whole keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.claim_id, timestampdiff(microsecond, '1970-01-01', h.started_at))
           )
    into v_old
    from (
        select s.started_at, s.claim_id, s.messages
        from rowq.started s force index (primary)
        where s.part_id = p_part_id
          and s.started_at >= v_since
          and s.started_at < v_before
        order by s.part_id, s.started_at, s.claim_id
        limit v_limit
    ) h;

    if v_old is not null then
        delete s
        from json_table(
            v_old, '$[*]' columns (claim_id bigint path '$[0]', started_at bigint path '$[1]')
        ) j
        straight_join rowq.started s force index (primary)
            on s.part_id = p_part_id
           and s.started_at = v_epoch + interval j.started_at microsecond
           and s.claim_id = j.claim_id;
    end if;
end//
delimiter ;

-- [file internal/purge_waiting.sql]
drop procedure if exists rowq.internal_purge_waiting;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_purge_waiting(
    p_part_id int,
    p_of_dead boolean,
    p_limit bigint,
    p_owns_transaction boolean,
    out p_removed bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_purge_waiting
-- purpose   Delete up to p_limit delayed messages, or dead ones; null means all.
-- promise   P15
-- locks     delayed or dead rows, passing over locked ones; message and dedup rows
    declare c_step int default 5000;
    declare v_after datetime(6) default '1970-01-01 00:00:00';
    declare v_before datetime(6);
    declare v_after_id bigint default 0;
    declare v_step int;
    declare v_ids, v_messages, v_tokenless, v_keyless longtext;
    set p_removed = 0;

    steps: loop
        set v_step = least(c_step, coalesce(p_limit - p_removed, c_step)), v_before = v_after;
        if v_step <= 0 then
            leave steps;
        end if;
        if p_of_dead then
            select json_arrayagg(h.message_id), max(h.message_id) into v_ids, v_after_id
            from (
                select d.message_id
                from rowq.dead d force index (primary)
                where d.part_id = p_part_id
                  and d.message_id > v_after_id
                order by d.part_id, d.message_id
                limit v_step
            ) h;
        else
            select json_arrayagg(h.message_id), max(h.due_at) into v_ids, v_after
            from (
                select d.message_id, d.due_at
                from rowq.delayed d force index (primary)
                where d.part_id = p_part_id
                  and d.due_at >= v_after
                  and d.message_id > 0
                order by d.part_id, d.due_at, d.message_id
                limit v_step
            ) h;
        end if;
        if v_ids is null then
            leave steps;
        end if;

        call rowq.internal_pop_waiting(p_part_id, v_ids, v_messages, v_tokenless, v_keyless);
        if v_messages is not null then
            call rowq.internal_finish(
                p_part_id, 0, true, v_messages, v_tokenless, v_keyless, p_owns_transaction,
                'cancelled'
            );
            set p_removed = p_removed + json_length(v_messages);
        elseif not p_of_dead and v_after = v_before then
            -- All rows of this step have the same due_at and are locked by other sessions, so that
            -- the next step would find the same rows.
            leave steps;
        end if;
    end loop;
end//
delimiter ;

-- [file internal/push_claim.sql]
drop procedure if exists rowq.internal_push_claim;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_claim(
    p_part_id int,
    p_leased_at datetime(6),
    p_lease_until datetime(6),
    p_worker_name varchar(200),
    p_messages longtext,
    out p_claim_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_push_claim
-- purpose   Note a batch that was taken as a claim: as a range of ids where they follow each other, else as a list.
-- promise   P02 P03
-- locks     the new claim row
    declare v_is_keyed, v_is_range boolean;
    declare v_lane, v_attempt smallint;
    declare v_first_id, v_last_id bigint;

    select max(j.is_keyed), min(j.lane), min(j.attempt), min(j.message_id), max(j.message_id),
           min(j.message_id - j.place) = max(j.message_id - j.place)
           and min(j.lane) = max(j.lane)
           and min(j.attempt) = max(j.attempt)
    into v_is_keyed, v_lane, v_attempt, v_first_id, v_last_id, v_is_range
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            is_keyed tinyint path '$[4]'
        )
    ) j;

    set p_claim_id = uuid_short() & 9007199254740991;
    if v_is_range then
        insert into rowq.claim (
            part_id, claim_id, leased_at, lease_until, worker_name, is_keyed, lane, attempt,
            first_id, last_id
        )
        values (
            p_part_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed, v_lane,
            v_attempt, v_first_id, v_last_id
        );
    else
        insert into rowq.claim (
            part_id, claim_id, leased_at, lease_until, worker_name, is_keyed, messages
        )
        values (
            p_part_id, p_claim_id, p_leased_at, p_lease_until, p_worker_name, v_is_keyed, p_messages
        );
    end if;
end//
delimiter ;

-- [file internal/push_dead.sql]
drop procedure if exists rowq.internal_push_dead;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_dead(
    p_part_id int,
    p_messages longtext,
    p_error longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_push_dead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead rows; message rows, tried only, but waited for in the caller's transaction;
--           new result rows; dedup rows; as internal_leave_groups and internal_follow_deaths
    declare v_is_held boolean;
    declare v_is_sliced boolean default false;
    declare v_rest longtext default p_messages;
    declare v_slice, v_ties longtext;

    insert into rowq.dead (part_id, message_id, lane, attempt, died_at, last_error)
    select p_part_id, j.message_id, j.lane, j.attempt, utc_timestamp(6), left(p_error, 2000)
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;

    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        if v_rest is not null and not v_is_sliced then
            call rowq.internal_lock_ties(p_part_id, p_messages, null, not p_owns_transaction);
            set v_is_sliced = true;
        end if;
        -- In a transaction of its own the call sees every message without a lock, and keys never
        -- change. Who has come to wait is looked for below.
        call rowq.internal_read_ties(v_slice, null, true, not p_owns_transaction, v_ties);
        if v_ties is not null then
            call rowq.internal_release_dedup_keys(p_part_id, v_ties);
            select q.group_after_dead = 'hold' into v_is_held
            from rowq.queue q
            where q.part_id = p_part_id;
            if v_is_held then
                update json_table(
                    v_ties,
                    '$[*]' columns (
                        message_id bigint path '$[0]',
                        group_key varchar(1600) path '$[1]'
                    )
                ) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = p_part_id
                   and d.message_id = j.message_id
                set d.holds_group = true
                where j.group_key is not null;
            else
                call rowq.internal_leave_groups(p_part_id, v_ties, p_owns_transaction);
            end if;
        end if;
    end while;
    call rowq.internal_push_result(p_part_id, p_messages, 'dead', p_error, null, null);
    call rowq.internal_follow_deaths(p_part_id, p_messages, null, p_owns_transaction);
end//
delimiter ;

-- [file internal/push_delayed.sql]
drop procedure if exists rowq.internal_push_delayed;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_delayed(p_part_id int, p_delayed longtext, p_error longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_delayed
-- purpose   Let messages wait for their time; those that are due are ready at once.
-- promise   P10 P11 P36
-- locks     message rows; new delayed and ready rows
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_due longtext;
    declare v_expiring int;

    update json_table(
        p_delayed, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    set m.last_error = left(p_error, 2000),
        m.due_at = v_epoch + interval j.due_at microsecond;

    insert into rowq.delayed (part_id, due_at, message_id, lane, attempt)
    select p_part_id, v_epoch + interval j.due_at microsecond, j.message_id, j.lane, j.attempt
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond > v_now;

    select count(*) into v_expiring
    from json_table(p_delayed, '$[*]' columns (message_id bigint path '$[0]')) j
    left join rowq.message m force index (primary) on m.message_id = j.message_id
    where m.expires_at is not null
       or m.message_id is null;
    if v_expiring > 0 then
        call rowq.internal_note_expiry(p_part_id, p_delayed, null);
    end if;

    select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into v_due
    from json_table(
        p_delayed,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            due_at bigint path '$[3]'
        )
    ) j
    where v_epoch + interval j.due_at microsecond <= v_now;
    if v_due is not null then
        call rowq.internal_push_ready(p_part_id, v_due);
    end if;
end//
delimiter ;

-- [file internal/push_history.sql]
drop procedure if exists rowq.internal_push_history;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_history(
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

-- [file internal/push_ready.sql]
drop procedure if exists rowq.internal_push_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_ready(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_push_ready
-- purpose   Append messages to lanes, in the order of the array, under new numbers.
-- promise   P02 P14 P36
-- locks     new ready and expiry rows; rows of lanes that are closed, passing over locked ones
    declare v_seq bigint;
    declare v_lane smallint default -1;
    declare v_expiring int;

    -- One look finds the lanes that are closed, and the first one whether messages expire, or may,
    -- because an old snapshot does not show them.
    lanes: loop
        select min(if(j.lane > v_lane and not l.is_open, j.lane, null)),
               coalesce(v_expiring, sum(m.expires_at is not null or m.message_id is null))
        into v_lane, v_expiring
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
        ) j
        straight_join rowq.lane l force index (primary)
            on l.part_id = p_part_id
           and l.lane = j.lane
        left join rowq.message m force index (primary)
            on m.message_id = j.message_id
           and v_expiring is null;
        if v_lane is null then
            leave lanes;
        end if;
        call rowq.internal_open_lane(p_part_id, v_lane);
    end loop;

    set v_seq = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));

    insert into rowq.ready (part_id, lane, seq, message_id, attempt)
    select p_part_id, j.lane, v_seq + j.place, j.message_id, j.attempt
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]'
        )
    ) j;
    if v_expiring > 0 then
        call rowq.internal_note_expiry(p_part_id, p_messages, v_seq);
    end if;
end//
delimiter ;

-- [file internal/push_result.sql]
drop procedure if exists rowq.internal_push_result;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_push_result(
    p_part_id int,
    p_messages longtext,
    p_state varchar(20),
    p_error longtext,
    p_results longtext,
    p_asked_ids longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_push_result
-- purpose   Keep how messages have ended, where the queue has result_seconds; p_results go along p_asked_ids, among which they are. Without p_error a dead message has that of its row in dead.
-- promise   P32
-- locks     result rows
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_result_seconds double;

    select q.result_seconds into v_result_seconds
    from rowq.queue q
    where q.part_id = p_part_id;

    if v_result_seconds > 0 and p_results is null then
        -- A dead message that is cancelled or purged has its row already.
        insert into rowq.result (part_id, message_id, finished_at, state, last_error)
        select p_part_id, j.message_id, v_now, p_state, left(p_error, 2000)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        on duplicate key update
            finished_at = v_now,
            state       = p_state;
        if p_state = 'dead' and p_error is null then
            update json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.dead d force index (primary)
                on d.part_id = p_part_id
               and d.message_id = j.message_id
            straight_join rowq.result r force index (primary)
                on r.part_id = p_part_id
               and r.message_id = j.message_id
            set r.last_error = d.last_error;
        end if;
    elseif v_result_seconds > 0 then
        -- The limit has the engine keep the results in a table, and not read the text again for
        -- each message.
        insert into rowq.result (part_id, message_id, finished_at, state, result)
        select p_part_id, j.message_id, v_now, p_state,
               if(json_type(r.result) = 'NULL', null, r.result)
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join (
            select a.message_id, min(a.place) as place
            from json_table(
                p_asked_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
            ) a
            group by a.message_id
        ) w on w.message_id = j.message_id
        straight_join (
            select x.place, x.result
            from json_table(
                p_results, '$[*]' columns (place for ordinality, result json path '$')
            ) x
            limit 10000
        ) r on r.place = w.place;
    end if;
end//
delimiter ;

-- [file internal/read_result.sql]
drop procedure if exists rowq.internal_read_result;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_read_result(
    p_part_id int,
    p_message_id bigint,
    out p_state varchar(20),
    out p_finished_at datetime(6),
    out p_result longtext,
    out p_last_error varchar(2000)
)
sql security definer
reads sql data
begin
-- routine   internal_read_result
-- purpose   Return how a message has ended, and its result; of one that has not ended its state; nulls when rowq does not know it.
-- promise   P32
-- differs   no such helper elsewhere: part of get_result
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_worker_name varchar(200);
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare v_place varchar(20);
    set p_state = null, p_finished_at = null, p_result = null, p_last_error = null;

    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = p_part_id;
    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            p_part_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_place, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
    end if;

    if v_place in ('ready', 'delayed', 'blocked', 'leased') then
        set p_state = v_place;
    else
        -- Look for the result last, because it is committed together with the end that was seen.
        select r.state, r.finished_at, r.result, r.last_error
        into p_state, p_finished_at, p_result, p_last_error
        from rowq.result r force index (primary)
        where r.part_id = p_part_id
          and r.message_id = p_message_id
          and r.message_id > 0;
        if p_state is null and v_place is not null then
            set p_state = v_place, p_finished_at = v_finished_at;
            select d.last_error into p_last_error
            from rowq.dead d force index (primary)
            where d.part_id = p_part_id
              and d.message_id = p_message_id;
        elseif p_state is null then
            select a.state, a.finished_at into p_state, p_finished_at
            from rowq.archive a force index (archive_message_ix)
            where a.part_id = p_part_id
              and a.message_id = p_message_id;
        end if;
    end if;
end//
delimiter ;

-- [file internal/read_ties.sql]
drop procedure if exists rowq.internal_read_ties;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_read_ties(
    p_messages longtext,
    p_tokenless longtext,
    p_with_keys boolean,
    p_is_locking boolean,
    out p_ties longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_read_ties
-- purpose   Return what the end of these messages has to free, as [message_id, group key in hex or null, dedup key in hex or null, 1 if others wait for it]; null where that is nothing. p_tokenless are ids that have no token of their group, and p_with_keys is whether a dedup key counts. Of messages with keys there are no more than internal_next_slice takes.
-- locks     all of the message rows, if asked for
-- differs   PostgreSQL reads them as it deletes the messages
    declare v_cut_at bigint unsigned default @@group_concat_max_len;
    declare exit handler for sqlexception
    begin
        set session group_concat_max_len = v_cut_at;
        resignal;
    end;

    -- MariaDB cuts what json_arrayagg returns to this length, which 300 messages stay below
    -- whatever their keys, and to that of a packet, below which a slice stays.
    if json_length(p_messages) > 300 and v_cut_at < @@max_allowed_packet then
        set session group_concat_max_len = @@max_allowed_packet;
    end if;
    if p_is_locking then
        -- Lock every row, so that nobody comes to wait for one of them any more. The limit keeps
        -- the engine from locking only those that the condition below wants. An old snapshot may
        -- not show a message yet, but a lock finds it.
        select json_arrayagg(json_array(
                   h.message_id, if(t.message_id is null, hex(h.group_key), null),
                   hex(h.dedup_key), h.has_successors
               ))
        into p_ties
        from (
            select m.message_id, m.group_key, m.dedup_key, m.has_successors
            from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            limit 1000000
            for update /*!80000 of m */
        ) h
        left join (
            select distinct j.message_id
            from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = h.message_id
        where (h.group_key is not null and t.message_id is null)
           or (p_with_keys and h.dedup_key is not null)
           or h.has_successors;
    else
        select json_arrayagg(json_array(
                   m.message_id, if(t.message_id is null, hex(m.group_key), null),
                   hex(m.dedup_key), m.has_successors
               ))
        into p_ties
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        left join (
            select distinct j.message_id
            from json_table(p_tokenless, '$[*]' columns (message_id bigint path '$')) j
        ) t on t.message_id = m.message_id
        where (m.group_key is not null and t.message_id is null)
           or (p_with_keys and m.dedup_key is not null)
           or m.has_successors;
    end if;
    if @@group_concat_max_len <> v_cut_at then
        set session group_concat_max_len = v_cut_at;
    end if;
end//
delimiter ;

-- [file internal/reap.sql]
drop procedure if exists rowq.internal_reap;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_reap(
    p_part_id int,
    p_max_attempts int,
    p_history_days int,
    p_limit int,
    p_owns_transaction boolean,
    out p_reaped int,
    out p_died int
)
sql security definer
modifies sql data
begin
-- routine   internal_reap
-- purpose   Take messages back from expired claims to the front of their lanes, until p_limit is passed.
-- promise   P03 P09 P34 P37
-- locks     expired claim rows, passing over locked ones; message rows, waited for in the caller's
--           transaction only; message and dedup rows of cancelled messages, tried only; for them as
--           internal_finish; new history rows
    declare v_expired, v_held, v_messages, v_cancel_ids, v_alive, v_dead, v_front longtext;
    declare v_worker_name varchar(200);
    declare v_error varchar(300);
    declare v_leased_at datetime(6);
    declare v_after, v_claim_id, v_first_id, v_last_id bigint;
    declare v_lane, v_attempt smallint;
    declare v_at, v_ended int default 0;
    declare v_free, v_keyed, v_free_keys int;
    set p_reaped = 0, p_died = 0;

    select greatest(l.floor - 1, 0) into v_after
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -1;

    claims: while p_reaped + p_died + v_ended < p_limit do
        if v_at >= coalesce(json_length(v_expired), 0) then
            -- Find expired claims without locks, so that live claims are never locked, then lock
            -- them one by one.
            select json_arrayagg(h.claim_id), max(h.claim_id), 0 into v_expired, v_after, v_at
            from (
                select c.claim_id
                from rowq.claim c force index (primary)
                where c.part_id = p_part_id
                  and c.claim_id > v_after
                  and c.lease_until <= utc_timestamp(6)
                order by c.part_id, c.claim_id
                limit p_limit
            ) h;
            if v_expired is null then
                leave claims;
            end if;
        end if;
        set v_claim_id = json_extract(v_expired, concat('$[', v_at, ']')), v_at = v_at + 1;

        -- Pass over a claim whose heartbeat or finish came first: its lease is longer by then, or
        -- its row is locked or gone.
        set v_messages = null, v_first_id = null, v_cancel_ids = null;
        select c.worker_name, c.leased_at, c.lane, c.attempt, c.first_id, c.last_id, c.messages,
               c.cancel_ids
        into v_worker_name, v_leased_at, v_lane, v_attempt, v_first_id, v_last_id, v_messages,
             v_cancel_ids
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id
          and c.lease_until <= utc_timestamp(6)
        for update skip locked;
        if v_messages is null and v_first_id is not null then
            call rowq.internal_expand_range(
                v_first_id, v_last_id, v_lane, v_attempt, v_messages
            );
        end if;
        if v_messages is null then
            iterate claims;
        end if;
        if v_cancel_ids is not null then
            -- Leave the claim alone while a producer is adding a message that waits for one of
            -- these, or was told of one as a duplicate, because the end of a message would wait
            -- for that transaction.
            select count(*), sum(h.is_keyed), 0 into v_free, v_keyed, v_free_keys
            from (
                select m.message_id, m.dedup_key is not null as is_keyed
                from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
                straight_join rowq.message m force index (primary) on m.message_id = j.message_id
                for update /*!80000 of m */ skip locked
            ) h;
            if v_keyed > 0 then
                select count(*) into v_free_keys
                from (
                    select k.message_id
                    from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
                    straight_join rowq.message m force index (primary)
                        on m.message_id = j.message_id
                    straight_join rowq.dedup k force index (primary)
                        on k.part_id = p_part_id
                       and k.dedup_key = m.dedup_key
                    for update /*!80000 of m, k */ skip locked
                ) h;
            end if;
            if v_free < json_length(v_cancel_ids) or v_free_keys < v_keyed then
                iterate claims;
            end if;
        end if;
        delete c
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id
          and c.claim_id = v_claim_id;

        set v_held = v_messages, v_alive = null, v_dead = null,
            v_error = concat('lease expired', coalesce(concat(': ', v_worker_name), ''));
        if v_cancel_ids is not null then
            set v_ended = v_ended + json_length(v_cancel_ids);
            call rowq.internal_end_cancelled(
                p_part_id, v_cancel_ids, p_owns_transaction, v_messages
            );
        end if;
        if v_messages is not null then
            call rowq.internal_split_by_attempts(
                v_messages, p_max_attempts, p_owns_transaction, v_alive, v_dead
            );
        end if;
        if v_alive is not null then
            call rowq.internal_as_front(v_alive, 0, v_front);
            call rowq.internal_push_ready(p_part_id, v_front);
            call rowq.internal_note_error(v_alive, v_error);
            set p_reaped = p_reaped + json_length(v_alive);
        end if;
        if v_dead is not null then
            call rowq.internal_push_dead(
                p_part_id, v_dead, v_error, p_owns_transaction
            );
            set p_died = p_died + json_length(v_dead);
        end if;
        if p_history_days > 0 then
            call rowq.internal_push_history(
                p_part_id, v_claim_id, v_worker_name, v_leased_at, v_held, 'lease_expired',
                v_error, null, v_cancel_ids
            );
        end if;
    end while;
end//
delimiter ;

-- [file internal/recheck.sql]
drop procedure if exists rowq.internal_recheck;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_recheck(
    p_part_id int,
    p_limit int,
    p_owns_transaction boolean,
    p_may_reorder boolean,
    out p_solved int
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck
-- purpose   Look again at up to p_limit tokens and messages that were left; return for how many that was enough. p_may_reorder: what stays may be put behind what was not looked at.
-- promise   P22 P24 P26 P27
-- locks     recheck rows, passing over locked ones; as internal_pass_group, internal_widen_group,
--           internal_let_go, internal_free_successors and internal_recheck_death
    declare v_epoch datetime(6) default '1970-01-01 00:00:00';
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_since, v_due_at datetime(6);
    declare v_recheck_id, v_last_id, v_message_id, v_predecessor_id bigint;
    declare v_group_key varbinary(800);
    declare v_is_hint, v_is_left, v_is_done boolean;
    declare v_seen, v_locked, v_notes, v_awaited, v_again longtext;
    declare v_next, v_note varchar(80);
    declare v_is_end boolean default false;
    declare each_note cursor for
        select j.recheck_id, v_epoch + interval j.due_at microsecond
        from json_table(
            v_seen,
            '$[*]' columns (
                place for ordinality,
                recheck_id bigint path '$[0]',
                due_at bigint path '$[1]'
            )
        ) j
        order by j.place;
    declare continue handler for not found set v_is_end = true;
    set p_solved = 0;

    select v_epoch + interval l.floor microsecond into v_since
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane = -5;
    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(
               json_array(h.recheck_id, timestampdiff(microsecond, '1970-01-01', h.due_at))
           )
    into v_seen
    from (
        select r.due_at, r.recheck_id, r.is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and r.due_at >= v_since
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit p_limit
    ) h;

    open each_note;
    notes: loop
        set v_is_end = false, v_is_hint = null;
        fetch each_note into v_recheck_id, v_due_at;
        if v_is_end then
            leave notes;
        end if;
        set v_last_id = v_recheck_id;
        select r.group_key, r.message_id, r.predecessor_id, r.is_hint
        into v_group_key, v_message_id, v_predecessor_id, v_is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and r.due_at = v_due_at
          and r.recheck_id = v_recheck_id
        for update skip locked;
        if v_is_hint is null then
            iterate notes;
        end if;
        set v_note = concat(
                '[', coalesce(v_message_id, 'null'), ',', v_recheck_id, ',',
                timestampdiff(microsecond, v_epoch, v_due_at), ']'
            ),
            v_locked = concat_ws(',', v_locked, v_note);
        -- An old snapshot does not show what has happened to messages since.
        if v_group_key is null and not p_owns_transaction then
            iterate notes;
        end if;

        -- A row that cannot be solved stays as it is: a producer that is idle in its transaction
        -- must not make every look write.
        if v_message_id is not null then
            set v_is_done = false, v_notes = concat_ws(',', v_notes, v_note);
        elseif v_predecessor_id is not null and v_is_hint then
            call rowq.internal_recheck_death(p_part_id, v_predecessor_id, v_is_done);
        elseif v_predecessor_id is not null then
            call rowq.internal_free_successors(p_part_id, v_predecessor_id, p_owns_transaction);
            set v_is_done = true;
        elseif v_is_hint then
            call rowq.internal_widen_group(
                p_part_id, v_group_key, p_owns_transaction, v_is_done
            );
        else
            call rowq.internal_pass_group(
                p_part_id, v_group_key, true, p_owns_transaction, v_next, v_is_left
            );
            set v_is_done = not v_is_left;
            if v_next is not null then
                call rowq.internal_push_ready(p_part_id, concat('[', v_next, ']'));
            end if;
        end if;
        if v_is_done then
            delete from rowq.recheck
            where part_id = p_part_id
              and due_at = v_due_at
              and recheck_id = v_recheck_id;
            set p_solved = p_solved + 1;
        end if;
    end loop;
    close each_note;

    -- One call for all of the messages waits once for a producer that opens their group.
    if v_notes is not null then
        set v_notes = concat('[', v_notes, ']');
        select json_arrayagg(h.message_id) into v_awaited
        from (
            select distinct j.message_id
            from json_table(v_notes, '$[*]' columns (message_id bigint path '$[0]')) j
            order by j.message_id
            limit 1000000
        ) h;
        call rowq.internal_let_go(p_part_id, v_awaited, null, p_owns_transaction, v_again);
        delete r
        from json_table(
            v_notes,
            '$[*]' columns (
                message_id bigint path '$[0]',
                recheck_id bigint path '$[1]',
                due_at bigint path '$[2]'
            )
        ) j
        straight_join rowq.recheck r force index (primary)
            on r.part_id = p_part_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.recheck_id = j.recheck_id
        left join json_table(
            coalesce(v_again, '[]'), '$[*]' columns (message_id bigint path '$')
        ) a on a.message_id = j.message_id
        where a.message_id is null;
        set p_solved = p_solved + row_count();
    end if;

    -- But where there are so many of these that others were not looked at, put them behind those.
    set v_recheck_id = null;
    if p_may_reorder and v_locked is not null and p_solved < p_limit
       and json_length(v_seen) >= p_limit then
        select r.recheck_id, r.is_hint into v_recheck_id, v_is_hint
        from rowq.recheck r force index (primary)
        where r.part_id = p_part_id
          and (r.due_at = v_due_at and r.recheck_id > v_last_id or r.due_at > v_due_at)
          and r.due_at <= v_now
        order by r.part_id, r.due_at, r.recheck_id
        limit 1;
    end if;
    if v_recheck_id is not null then
        update json_table(
            concat('[', v_locked, ']'),
            '$[*]' columns (recheck_id bigint path '$[1]', due_at bigint path '$[2]')
        ) j
        straight_join rowq.recheck r force index (primary)
            on r.part_id = p_part_id
           and r.due_at = v_epoch + interval j.due_at microsecond
           and r.recheck_id = j.recheck_id
        set r.due_at = v_now;
    end if;
end//
delimiter ;

-- [file internal/recheck_death.sql]
drop procedure if exists rowq.internal_recheck_death;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_recheck_death(
    p_part_id int,
    p_message_id bigint,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck_death
-- purpose   Look again what waits for a dead message; p_is_done is false where a producer is still adding something that does. The transaction must be the call's own.
-- promise   P27
-- locks     the message row, tried only; as internal_follow_deaths
    declare v_message_id, v_dead_id bigint;
    select m.message_id into v_message_id
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = p_part_id
    for update skip locked;
    set p_is_done = true;

    if v_message_id is null then
        select m.message_id, false into v_message_id, p_is_done
        from rowq.message m force index (primary)
        where m.message_id = p_message_id
          and m.part_id = p_part_id;
    else
        -- One that was reset meanwhile is waited for as before.
        select d.message_id into v_dead_id
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
          and d.message_id = p_message_id;
        if v_dead_id is not null then
            call rowq.internal_follow_deaths(
                p_part_id, json_array(json_array(p_message_id + 0)), null, true
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/recheck_later.sql]
drop procedure if exists rowq.internal_recheck_later;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_recheck_later(
    p_part_id int,
    p_message_ids longtext,
    p_predecessor_ids longtext,
    p_are_dead boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_recheck_later
-- purpose   Have maintain look again at blocked messages, or at what waits for predecessors that have ended.
-- promise   P26
-- locks     new recheck rows
    insert into rowq.recheck (part_id, due_at, recheck_id, message_id, predecessor_id, is_hint)
    select p_part_id, utc_timestamp(6), uuid_short() & 9007199254740991,
           if(p_message_ids is null, null, j.message_id),
           if(p_message_ids is null, j.message_id, null),
           p_message_ids is null and p_are_dead
    from json_table(
        coalesce(p_message_ids, p_predecessor_ids), '$[*]' columns (message_id bigint path '$')
    ) j;
end//
delimiter ;

-- [file internal/refuse.sql]
drop procedure if exists rowq.internal_refuse;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_refuse(p_fault longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse
-- purpose   Raise the error for an invalid argument.
-- promise   P15
-- errors    RQ711
-- differs   no such helper elsewhere: other engines raise with an expression
    -- Cut the text, because MySQL refuses one of more than 128 characters.
    declare v_text varchar(128) default left(concat('RQ711 invalid_argument: ', p_fault), 128);
    signal sqlstate '45711' set message_text = v_text;
end//
delimiter ;

-- [file internal/refuse_claim.sql]
drop procedure if exists rowq.internal_refuse_claim;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_refuse_claim(p_claim_id bigint)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_claim
-- purpose   Raise the error for a claim that is gone.
-- promise   P08
-- errors    RQ721
    declare v_text varchar(128);
    set v_text = concat('RQ721 stale_claim: claim ', p_claim_id, ' holds nothing any more');
    signal sqlstate '45721' set message_text = v_text;
end//
delimiter ;

-- [file internal/refuse_not_empty.sql]
drop procedure if exists rowq.internal_refuse_not_empty;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_refuse_not_empty(p_part_id int, p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_not_empty
-- purpose   Raise an error if a queue still has messages or an archive.
-- promise   P15
-- locks     the first row of each kind, shared
-- errors    RQ704
-- differs   no such helper elsewhere: part of drop_queue
    declare v_probe bigint;
    declare v_text varchar(128);

    -- A locking read finds the rows as they are now, even under an old snapshot. The order is that
    -- of internal_delete_queue, for the same reason.
    select b.message_id into v_probe
    from rowq.blocked b force index (primary)
    where b.part_id = p_part_id
    limit 1
    lock in share mode;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.delayed d force index (primary)
        where d.part_id = p_part_id and d.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select g.message_id into v_probe
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id and g.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select r.message_id into v_probe
        from rowq.ready r force index (primary)
        where r.part_id = p_part_id and r.message_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select c.claim_id into v_probe
        from rowq.claim c force index (primary)
        where c.part_id = p_part_id and c.claim_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select d.message_id into v_probe
        from rowq.dead d force index (primary)
        where d.part_id = p_part_id
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select f.finish_id into v_probe
        from rowq.finished f force index (primary)
        where f.part_id = p_part_id and f.finish_id > 0
        limit 1
        lock in share mode;
    end if;
    if v_probe is null then
        select a.message_id into v_probe
        from rowq.archive a
        where a.part_id = p_part_id
        limit 1
        lock in share mode;
    end if;

    if v_probe is not null then
        set v_text = left(
            concat('RQ704 queue_not_empty: ', p_queue_name, '; force drops all of it'), 128
        );
        signal sqlstate '45704' set message_text = v_text;
    end if;
end//
delimiter ;

-- [file internal/refuse_queue.sql]
drop procedure if exists rowq.internal_refuse_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_refuse_queue(p_queue_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_refuse_queue
-- purpose   Raise the error for a queue name that is missing or unknown.
-- promise   P15
-- errors    RQ701 RQ711
    declare v_text varchar(128);
    if p_queue_name is null then
        call rowq.internal_refuse('queue_name is missing');
    end if;
    set v_text = concat('RQ701 queue_not_found: ', left(p_queue_name, 100));
    signal sqlstate '45701' set message_text = v_text;
end//
delimiter ;

-- [file internal/rejoin_groups.sql]
drop procedure if exists rowq.internal_rejoin_groups;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_rejoin_groups(
    p_part_id int,
    p_messages longtext,
    out p_waiting longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_rejoin_groups
-- purpose   Let messages that were dead join their groups, but for those that have kept their tokens: [message_id, lane, attempt, holds_group]; return the ids that wait there, the others are for the caller to make ready.
-- promise   P21 P22 P36
-- locks     as internal_join_groups; new expiry rows
-- differs   part of reset on PostgreSQL
    declare v_rest, v_slice, v_joining, v_some longtext;
    set p_waiting = null;

    -- Go in the order of the keys, as internal_join_groups does, and slice by slice, because no
    -- text holds the keys of many messages.
    select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_rest
    from (
        select j.message_id, j.lane
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                holds_group tinyint path '$[3]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.group_key is not null
          and not j.holds_group
        order by m.group_key, j.message_id
        limit 1000000
    ) h;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        select json_arrayagg(json_array(j.message_id, j.lane, 0, hex(m.group_key))) into v_joining
        from json_table(
            v_slice, '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        call rowq.internal_join_groups(p_part_id, v_joining, v_some);
        call rowq.internal_note_expiry(p_part_id, v_slice, null);
        if v_some is not null then
            set p_waiting = if(p_waiting is null, v_some, json_merge_preserve(p_waiting, v_some));
        end if;
    end while;
end//
delimiter ;

-- [file internal/release_dedup_keys.sql]
drop procedure if exists rowq.internal_release_dedup_keys;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_release_dedup_keys(p_part_id int, p_ties longtext)
sql security definer
modifies sql data
begin
-- routine   internal_release_dedup_keys
-- purpose   Free the dedup keys of messages that are finished or dead, as internal_read_ties returns them.
-- promise   P12
-- locks     dedup rows, in key order
    -- Delete in key order, because enqueue_batch inserts its keys in that order.
    delete k
    from (
        select j.message_id, unhex(j.dedup_key) as dedup_key
        from json_table(
            p_ties,
            '$[*]' columns (
                message_id bigint path '$[0]',
                dedup_key varchar(1600) path '$[2]'
            )
        ) j
        where j.dedup_key is not null
        order by j.dedup_key
        limit 1000000
    ) j
    straight_join rowq.dedup k force index (primary)
        on k.part_id = p_part_id
       and k.dedup_key = j.dedup_key
       and k.message_id = j.message_id;
end//
delimiter ;

-- [file internal/remove_queue.sql]
drop procedure if exists rowq.internal_remove_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_remove_queue(
    p_part_id int,
    p_queue_name longtext,
    p_force boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_remove_queue
-- purpose   Remove an empty queue, or with p_force a full one, if nobody holds any of it for a second.
-- promise   P02 P15
-- locks     the part for itself, the gate, then all rows of the queue, waiting for a second at most
-- errors    RQ704 RQ705
-- differs   PostgreSQL locks tables
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_part_id int;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_patience;
        signal sqlstate '45705'
            set message_text = 'RQ705 queue_busy: open transactions hold the queue; try again';
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;

    set session innodb_lock_wait_timeout = 1;
    -- Wait for open enqueues, because their messages are not visible yet.
    select p.part_id into v_part_id
    from rowq.part p
    where p.part_id = p_part_id
    for update;
    -- Wait for whoever takes messages under the queue's limits, and let nobody else do so.
    delete from rowq.gate
    where part_id = p_part_id;
    if not p_force then
        call rowq.internal_refuse_not_empty(p_part_id, p_queue_name);
    end if;
    call rowq.internal_delete_queue(p_part_id);
    set session innodb_lock_wait_timeout = v_patience;
end//
delimiter ;

-- [file internal/require_queue.sql]
drop procedure if exists rowq.internal_require_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_require_queue(p_queue_name longtext, out p_part_id int)
sql security definer
reads sql data
begin
-- routine   internal_require_queue
-- purpose   Return the part of a queue; raise an error if it does not exist.
-- promise   P15
-- errors    RQ701 RQ711
    set p_part_id = null;
    select q.part_id into p_part_id
    from rowq.queue q
    where q.queue_name = cast(p_queue_name as binary);
    if p_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;
end//
delimiter ;

-- [file internal/require_schedule.sql]
drop procedure if exists rowq.internal_require_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_require_schedule(p_part_id int, p_schedule_name longtext)
sql security definer
modifies sql data
begin
-- routine   internal_require_schedule
-- purpose   Hold a schedule to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    declare v_part_id int;
    declare v_text varchar(128);
    if p_schedule_name is null then
        call rowq.internal_refuse('schedule_name is missing');
    end if;
    select s.part_id into v_part_id
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = cast(p_schedule_name as binary);
    -- Lock only what is there, because under the caller's repeatable read a row that is not there
    -- would be locked as a gap. Look again, because it may have been dropped meanwhile.
    if v_part_id is not null then
        set v_part_id = null;
        select s.part_id into v_part_id
        from rowq.schedule s force index (primary)
        where s.part_id = p_part_id
          and s.schedule_name = cast(p_schedule_name as binary)
        for update;
    end if;
    if v_part_id is null then
        set v_text = concat('RQ702 schedule_not_found: ', left(p_schedule_name, 100));
        signal sqlstate '45702' set message_text = v_text;
    end if;
end//
delimiter ;

-- [file internal/rescan_floors.sql]
drop procedure if exists rowq.internal_rescan_floors;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_rescan_floors(
    p_part_id int,
    p_has_started boolean,
    p_has_results boolean,
    p_has_history boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_rescan_floors
-- purpose   Look for the first live row of every lane from its very start, those of started, result and history only if there may be one; put floors right, and open lanes.
-- promise   P13 P14
-- locks     rows of lanes, passing over locked ones
-- differs   PostgreSQL looks from a safe mark, and from the start once a minute
    declare c_duty int default 50;
    -- Times are in microseconds. A look that takes longer than c_short_walk has walked over dead
    -- rows. After one longer than c_long_walk the lane rests c_duty times as long, but never longer
    -- than c_longest_pause.
    declare c_short_walk bigint default 300;
    declare c_long_walk bigint default 20000;
    declare c_longest_pause bigint default 3600000000;
    declare v_lane smallint default case
        when p_has_history then -11
        when p_has_results then -10
        when p_has_started then -7
        else -6
    end;
    declare v_next smallint;
    declare v_is_open boolean;
    declare v_is_hidden boolean default false;
    declare v_floor, v_first, v_latest, v_worth_it, v_took, v_pause bigint;
    declare v_started, v_sweep_at datetime(6);
    declare v_marks longtext;

    -- Marks of sessions that could not open a lane: those that are there before the looks into the
    -- lanes are not needed after them.
    select json_arrayagg(l.lane) into v_marks
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and l.lane < -1000;

    lanes: loop
        set v_next = null;
        select l.lane, l.floor, l.is_open into v_next, v_floor, v_is_open
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane > v_lane
          and l.lane not in (-4, -7, -8)
          and (p_has_started or l.lane <> -6)
          and (p_has_results or l.lane <> -9)
          and l.check_after <= utc_timestamp(6)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        set v_lane = v_next;

        set v_started = utc_timestamp(6);
        call rowq.internal_first_key(p_part_id, v_lane, 0, v_first);
        set v_took = timestampdiff(microsecond, v_started, utc_timestamp(6));

        if v_lane >= 0 and v_first is not null and not v_is_open then
            -- The lane has messages but is closed: the transaction that was to open it has rolled
            -- back, or is still open.
            call rowq.internal_open_lane(p_part_id, v_lane);
            select l.is_open into v_is_open
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = v_lane;
            if not v_is_open then
                -- An open transaction holds the row of the lane, so leave the row alone, and let
                -- dequeue look into closed lanes meanwhile.
                set v_is_hidden = true;
                iterate lanes;
            end if;
        end if;
        if v_lane in (-1, -3) then
            if v_first is null and v_took > c_short_walk then
                -- Where there is no row, take the next number for the first, because all later rows
                -- are above it.
                call rowq.internal_next_number(p_part_id, v_lane, v_first);
            end if;
            set v_first = coalesce(v_first, v_floor), v_worth_it = 400;
        else
            -- The floor stays half a second behind now, because messages of the last moments may
            -- not be committed yet.
            set v_latest = timestampdiff(microsecond, '1970-01-01', v_started) - 500000,
                v_first = least(coalesce(v_first, v_latest), v_latest),
                v_worth_it = 60000000;
        end if;
        if v_took > c_short_walk then
            set v_worth_it = 0;
        end if;
        if v_first < v_floor
           or (v_first > v_floor + v_worth_it and (v_is_open or v_lane < 0)) then
            call rowq.internal_move_floor(p_part_id, v_lane, v_floor, v_first);
        end if;

        -- After a long walk over dead rows, rest for fifty times as long as it took.
        if v_took > c_long_walk then
            set v_pause = least(v_took * c_duty, c_longest_pause);
            -- Skip a row that an open purge_archive holds.
            set v_next = null;
            select l.lane into v_next
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = v_lane
            for update /*!80000 of l */ skip locked;
            if v_next is not null then
                update rowq.lane l
                set l.check_after = utc_timestamp(6) + interval v_pause microsecond
                where l.part_id = p_part_id
                  and l.lane = v_lane;
            end if;
        end if;
    end loop;

    -- A closed lane that rests was not looked into, and may be the one that a mark is for.
    set v_next = null;
    if v_marks is not null then
        select l.lane into v_next
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane >= 0
          and not l.is_open
          and l.check_after > utc_timestamp(6)
        limit 1;
    end if;
    if v_marks is not null and v_next is null then
        delete l
        from json_table(v_marks, '$[*]' columns (lane smallint path '$')) j
        straight_join rowq.lane l force index (primary)
            on l.part_id = p_part_id
           and l.lane = j.lane;
    end if;

    -- maintain may pass over the queue for five minutes while it is idle, but not while a lane
    -- rests, because to see that the queue is idle it would walk over the dead rows.
    set v_sweep_at = utc_timestamp(6) + interval 5 minute;
    set v_next = null;
    select l.lane into v_next
    from rowq.lane l force index (primary)
    where l.part_id = p_part_id
      and (l.lane > -7 or l.lane in (-8, -9, -10))
      and l.check_after > utc_timestamp(6)
    limit 1;
    if v_is_hidden or v_next is not null then
        set v_sweep_at = '1970-01-01';
    end if;
    -- This session is the one that is elected and holds the row of lane -1 already, so the update
    -- waits for nobody.
    update rowq.lane l
    set l.is_open = v_is_hidden,
        l.sweep_at = v_sweep_at
    where l.part_id = p_part_id
      and l.lane = -1
      and (
          l.is_open <> v_is_hidden
          or l.sweep_at not between utc_timestamp(6) and v_sweep_at
      );
end//
delimiter ;

-- [file internal/retake_dedup_keys.sql]
drop procedure if exists rowq.internal_retake_dedup_keys;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_retake_dedup_keys(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_retake_dedup_keys
-- purpose   Take the dedup keys of dead messages again, but not those that others have by now.
-- promise   P12
-- locks     new dedup rows, in key order; waits for another open enqueue of such a key
-- differs   part of reset on PostgreSQL
    declare v_rest, v_slice, v_keys longtext;

    -- Insert in key order, because enqueue_batch does, and slice by slice, because no text holds
    -- the keys of many messages.
    select json_arrayagg(json_array(h.message_id, null, null)) into v_rest
    from (
        select m.message_id
        from json_table(p_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where m.dedup_key is not null
        order by m.dedup_key, m.message_id
        limit 1000000
    ) h;
    while v_rest is not null do
        call rowq.internal_next_slice(v_rest, v_slice);
        -- Keys are read first: an insert that reads as well would meet error 1020 at a key that was
        -- taken while it waited, under innodb_snapshot_isolation.
        select json_arrayagg(json_array(m.message_id, hex(m.dedup_key))) into v_keys
        from json_table(v_slice, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
        insert ignore into rowq.dedup (part_id, dedup_key, message_id)
        select p_part_id, unhex(j.dedup_key), j.message_id
        from json_table(
            v_keys,
            '$[*]' columns (message_id bigint path '$[0]', dedup_key varchar(1600) path '$[1]')
        ) j
        order by unhex(j.dedup_key), j.message_id;
    end while;
end//
delimiter ;

-- [file internal/return_ready.sql]
drop procedure if exists rowq.internal_return_ready;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_return_ready(p_part_id int, p_messages longtext, p_kept int)
sql security definer
modifies sql data
begin
-- routine   internal_return_ready
-- purpose   Put back what internal_pop_ready took to where it was, except the first p_kept messages.
-- promise   P05 P07
-- locks     ready rows that the caller has locked already
-- commits   never; call it in the transaction that took the messages
-- differs   elsewhere what is left of a batch goes to the front of its priority
    -- No floor has moved past these rows meanwhile, because none moves past a row that is taken and
    -- not committed.
    insert into rowq.ready (part_id, lane, seq, message_id, attempt)
    select p_part_id, j.lane, j.seq, j.message_id, j.attempt - 1
    from json_table(
        p_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            attempt smallint path '$[2]',
            seq bigint path '$[3]'
        )
    ) j
    where j.place > p_kept;
end//
delimiter ;

-- [file internal/roll_back.sql]
drop procedure if exists rowq.internal_roll_back;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_roll_back(
    p_owns_transaction boolean,
    p_errno int,
    inout p_tries_left int
)
sql security definer
modifies sql data
begin
-- routine   internal_roll_back
-- purpose   Take back what was done since internal_begin_work; p_tries_left above 0 asks to do it again.
-- promise   P15 P17
-- commits   never; rolls back to where internal_begin_work was called
-- differs   only engines whose procedures open transactions need it
    -- A deadlock rolls back the whole transaction and removes its savepoint, so that "rollback to"
    -- fails with 1305.
    declare continue handler for 1305 begin end;

    if p_owns_transaction then
        rollback and no chain no release;
    elseif p_owns_transaction is not null then
        rollback to savepoint rowq_call;
    end if;

    -- After a deadlock (1213), or where a row has changed since it was read (1020), nothing has
    -- happened: try again.
    if p_owns_transaction and p_errno in (1213, 1020) then
        set p_tries_left = p_tries_left - 1;
    elseif p_errno = 1175 and @rowq_pinned is null then
        -- sql_safe_updates has refused a statement (1175): switch it off and try again.
        call rowq.internal_pin_session(@@timestamp);
        set p_tries_left = p_tries_left - 1;
    else
        set p_tries_left = 0;
    end if;
    if p_tries_left = 0 and @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file internal/room.sql]
drop procedure if exists rowq.internal_room;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_room(
    p_part_id int,
    p_wanted int,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    out p_room int
)
sql security definer
reads sql data
begin
-- routine   internal_room
-- purpose   Return how many of the wanted messages a queue's limits leave room for at this moment.
-- promise   P28 P29
    declare v_since datetime(6) default
        utc_timestamp(6) - interval round(p_rate_seconds * 1000000) microsecond;
    set p_room = p_wanted;

    if p_max_leased > 0 then
        -- Begin at the safe floor of the claims, because one that was committed late counts, too.
        select least(
                   p_room,
                   p_max_leased - coalesce(
                       sum(coalesce(json_length(c.messages), c.last_id - c.first_id + 1)), 0
                   )
               )
        into p_room
        from rowq.lane l force index (primary)
        straight_join rowq.claim c force index (primary)
            on c.part_id = l.part_id
           and c.claim_id >= l.floor
        where l.part_id = p_part_id
          and l.lane = -7
          and c.claim_id > 0;
    end if;
    if p_rate_limit > 0 and p_room > 0 then
        select least(p_room, p_rate_limit - coalesce(sum(s.messages), 0)) into p_room
        from rowq.started s force index (primary)
        where s.part_id = p_part_id
          and s.started_at > v_since;
    end if;
    set p_room = greatest(p_room, 0);
end//
delimiter ;

-- [file internal/run_due.sql]
drop procedure if exists rowq.internal_run_due;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_run_due(
    p_part_id int,
    p_schedule_name varbinary(400),
    inout p_is_late boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_run_due
-- purpose   Run a schedule that is due in a transaction or under a savepoint of its own; an error in it is noted, or the next call tries again. p_is_late becomes true where it had to wait.
-- promise   P30 P31
-- locks     the part, shared; as internal_run_ticks: not waited for on MariaDB, for a second at
--           most on MySQL
-- commits   its own transaction where the caller has none; never the caller's
-- differs   the shortest wait that MySQL has is a second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_refusal longtext;
    declare v_is_pinned boolean default coalesce(@rowq_pinned, false);

    attempt: loop
        begin
            declare v_errno int;
            declare v_state varchar(5);
            declare v_text longtext;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1
                    v_errno = mysql_errno, v_state = returned_sqlstate, v_text = message_text;
                set session innodb_lock_wait_timeout = v_patience;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_is_pinned and @rowq_pinned is null then
                    call rowq.internal_pin_session(@@timestamp);
                end if;
                if v_errno = 1205 then
                    set p_is_late = true;
                end if;
                -- The caller must get the error where the caller's transaction is gone (1213, 1020,
                -- 1205), or where the call was killed (1317) or ran out of its time (1969, 3024).
                if v_errno in (1317, 1969, 3024)
                   or not v_owns_transaction
                   and (v_errno in (1213, 1020) or v_errno = 1205 and @@innodb_rollback_on_timeout)
                then
                    resignal;
                end if;
                -- What comes of locks or of the server's state is tried again by the next call,
                -- and so is a number that is used already (1062). What would be refused again is
                -- noted, and its tick is given up.
                if v_refusal is null
                   and left(v_state, 2) in ('45', '22', '23')
                   and v_errno <> 1062
                then
                    set v_refusal = v_text, v_tries_left = 1;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
            call rowq.internal_lock_part_shared(p_part_id, '');
            call rowq.internal_run_ticks(
                p_part_id, p_schedule_name, v_refusal, v_owns_transaction
            );
            set session innodb_lock_wait_timeout = v_patience;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;

-- [file internal/run_schedules.sql]
drop procedure if exists rowq.internal_run_schedules;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_run_schedules(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_run_schedules
-- purpose   Run the schedules of a queue that are due and that no other session is running.
-- promise   P30 P31
-- locks     as internal_run_due
-- commits   its own transaction where the caller has none; never the caller's
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_names longtext;
    declare v_at int default 0;
    declare v_is_late, v_is_tied boolean default false;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. A
    -- thousand of the longest names fit into what group_concat_max_len is at least.
    select json_arrayagg(json_array(hex(h.schedule_name), h.is_tied)) into v_names
    from (
        select s.schedule_name, if(s.group_key is null and s.overlap, 0, 1) as is_tied
        from rowq.schedule s force index (primary)
        where s.part_id = p_part_id
          and s.next_run_at <= v_now
        limit 1000
    ) h;
    while v_at < coalesce(json_length(v_names), 0) do
        -- Wait for a producer once a call.
        set v_is_tied = json_extract(v_names, concat('$[', v_at, '][1]'));
        if not (v_is_late and v_is_tied) then
            call rowq.internal_run_due(
                p_part_id,
                unhex(json_unquote(json_extract(v_names, concat('$[', v_at, '][0]')))),
                v_is_late
            );
        end if;
        set v_at = v_at + 1;
    end while;
end//
delimiter ;

-- [file internal/run_ticks.sql]
drop procedure if exists rowq.internal_run_ticks;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_run_ticks(
    p_part_id int,
    p_schedule_name varbinary(400),
    p_refusal longtext,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_run_ticks
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; with p_refusal, why they cannot be added, add none and note it.
-- promise   P30 P31
-- locks     the schedule row, passed over when locked; as internal_send_tick
-- errors    RQ711
-- differs   elsewhere internal_run_due does this
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_late datetime(6) default v_now - interval 60 second;
    declare v_tick, v_starts_at, v_ends_at datetime(6);
    declare v_interval_seconds double;
    declare v_cron varchar(200);
    declare v_bits varchar(136);
    declare v_time_zone, v_missed, v_outcome varchar(64);
    declare v_error longtext default p_refusal;
    declare v_message_id, v_last_id bigint;
    declare v_count int default 0;
    -- Where the server has lost its tables of time zones, the next tick is not known, so that this
    -- one stays due.
    declare continue handler for sqlstate '45711'
    begin
        if p_refusal is null then
            resignal;
        end if;
    end;

    select s.next_run_at, s.cron, s.interval_seconds, s.time_zone, s.missed, s.starts_at, s.ends_at
    into v_tick, v_cron, v_interval_seconds, v_time_zone, v_missed, v_starts_at, v_ends_at
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
      and s.next_run_at <= v_now
    for update skip locked;

    if v_tick is not null then
        if v_cron is not null then
            call rowq.internal_parse_cron(v_cron, v_bits);
        end if;
        if p_refusal is not null then
            call rowq.internal_next_tick(
                v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_now, v_tick
            );
            set v_count = 100;
        end if;
        while v_tick <= v_now and v_count < 100 do
            if v_tick < v_late and v_missed = 'skip' then
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_late, v_tick
                );
            else
                call rowq.internal_send_tick(
                    p_part_id, p_schedule_name, v_tick, p_owns_transaction, v_message_id, v_outcome
                );
                set v_error = null, v_count = v_count + 1;
                if v_outcome = 'enqueued' then
                    set v_last_id = v_message_id;
                else
                    set v_error = concat(
                        'message ', v_message_id, ' of an earlier tick has not ended'
                    );
                end if;
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at,
                    if(v_tick < v_late and v_missed = 'once', v_now, v_tick), v_tick
                );
            end if;
        end while;

        update rowq.schedule s
        set s.next_run_at     = v_tick,
            s.last_run_at     = if(v_last_id is null, s.last_run_at, v_now),
            s.last_message_id = coalesce(v_last_id, s.last_message_id),
            s.last_error      = left(v_error, 2000)
        where s.part_id = p_part_id
          and s.schedule_name = p_schedule_name;
    end if;
end//
delimiter ;

-- [file internal/send_tick.sql]
drop procedure if exists rowq.internal_send_tick;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_send_tick(
    p_part_id int,
    p_schedule_name varbinary(400),
    p_tick datetime(6),
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20)
)
sql security definer
modifies sql data
begin
-- routine   internal_send_tick
-- purpose   Add the message of a schedule, whose row the caller holds, to its queue; the outcome is enqueue's.
-- promise   P30
-- locks     as internal_store and internal_store_grouped
-- errors    RQ711
-- differs   elsewhere it calls enqueue, which returns a result here
    declare v_body, v_headers, v_merged, v_dedup_key, v_group_key, v_name longtext;
    declare v_body_binary longblob;
    declare v_message_type, v_joining varchar(2000);
    declare v_priority, v_max_attempts, v_max_body_length int;
    declare v_is_failed boolean;
    declare v_fault varchar(120);

    select q.max_body_length into v_max_body_length
    from rowq.queue q
    where q.part_id = p_part_id;
    -- Read with a lock, because an old snapshot shows the schedule as it was.
    select convert(s.schedule_name using utf8mb4), s.body, s.body_binary, s.message_type,
           s.headers, s.priority, s.max_attempts, convert(s.group_key using utf8mb4),
           if(s.overlap, null, concat('schedule:', convert(s.schedule_name using utf8mb4)))
    into v_name, v_body, v_body_binary, v_message_type, v_headers, v_priority, v_max_attempts,
         v_group_key, v_dedup_key
    from rowq.schedule s force index (primary)
    where s.part_id = p_part_id
      and s.schedule_name = p_schedule_name
    for update;

    call rowq.internal_tick_headers(v_name, v_headers, p_tick, v_merged);
    call rowq.internal_message_fault(
        v_body, v_body_binary, v_message_type, v_merged, v_priority, null, null, v_dedup_key,
        v_max_attempts, v_group_key, null, null, null, v_max_body_length, v_fault
    );
    if v_fault is not null then
        call rowq.internal_refuse(v_fault);
    end if;
    call rowq.internal_store(
        p_part_id, 0, utc_timestamp(6), v_body, v_body_binary, v_message_type, v_merged,
        v_priority, null, v_dedup_key, v_max_attempts, v_group_key, null, null, null,
        null, p_owns_transaction, p_message_id, p_outcome, v_joining, v_is_failed
    );
    if v_joining is not null then
        call rowq.internal_store_grouped(p_part_id, concat('[', v_joining, ']'));
    end if;
end//
delimiter ;

-- [file internal/shape_archive.sql]
drop procedure if exists rowq.internal_shape_archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_shape_archive(p_statement longtext, out p_is_done boolean)
sql security definer
modifies sql data
begin
-- routine   internal_shape_archive
-- purpose   Add or drop a partition of the archive, if nobody reads it for a second.
-- promise   P19
-- locks     the archive, waiting for a second at most
-- commits   implicitly, as all statements that change a table; call it outside transactions
-- differs   only engines where such a statement commits need it
    declare v_patience bigint default @@session.lock_wait_timeout;
    -- The statement fails where another session reads the archive, or where another maintain was
    -- faster: leave it to the next call.
    declare continue handler for sqlexception set p_is_done = false;
    -- A call that was killed (1317) or ran out of its time (1969, 3024) must end with that error.
    declare exit handler for 1317, 1969, 3024
    begin
        set session lock_wait_timeout = v_patience;
        set @rowq_statement = null;
        resignal;
    end;
    set p_is_done = true;

    -- A prepared statement can take its text only from a variable of the session. On MariaDB the
    -- caller's alter_algorithm would decide how the partition is made, or refuse it.
    set @rowq_statement = concat(
        if(version() like '%MariaDB%', 'set statement alter_algorithm = default for ', ''),
        p_statement
    );
    set session lock_wait_timeout = 1;
    prepare rowq_shape from @rowq_statement;
    if p_is_done then
        execute rowq_shape;
        deallocate prepare rowq_shape;
    end if;
    set session lock_wait_timeout = v_patience;
    set @rowq_statement = null;
end//
delimiter ;

-- [file internal/split_by_attempts.sql]
drop procedure if exists rowq.internal_split_by_attempts;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_split_by_attempts(
    p_messages longtext,
    p_max_attempts int,
    p_owns_transaction boolean,
    out p_alive longtext,
    out p_dead longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_split_by_attempts
-- purpose   Divide messages into those with an attempt left and those without; null where there is none.
-- promise   P10
-- locks     in the caller's transaction message rows
    declare v_worn longtext;

    if p_owns_transaction then
        select json_arrayagg(j.message_id) into v_worn
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= coalesce(m.max_attempts, p_max_attempts);
    else
        -- Read with a lock, because an old snapshot may not show the message yet.
        select json_arrayagg(j.message_id) into v_worn
        from json_table(
            p_messages,
            '$[*]' columns (message_id bigint path '$[0]', attempt smallint path '$[2]')
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        where j.attempt >= coalesce(m.max_attempts, p_max_attempts)
        for update /*!80000 of m */;
    end if;
    set p_alive = p_messages, p_dead = null;

    if v_worn is not null then
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_alive
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        left join (
            select distinct x.message_id
            from json_table(v_worn, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id
        where w.message_id is null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt)) into p_dead
        from json_table(
            p_messages,
            '$[*]' columns (
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]'
            )
        ) j
        straight_join (
            select distinct x.message_id
            from json_table(v_worn, '$[*]' columns (message_id bigint path '$')) x
        ) w on w.message_id = j.message_id;
    end if;
end//
delimiter ;

-- [file internal/store.sql]
drop procedure if exists rowq.internal_store;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_store(
    p_part_id int,
    p_place int,
    p_now datetime(6),
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_due_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_own_id bigint,
    p_on_predecessor_dead longtext,
    p_expire_seconds double,
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20),
    out p_joining varchar(2000),
    out p_is_failed boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_store
-- purpose   Keep one message, already checked, and let it wait where it belongs; p_joining is one that joins its group now, for internal_store_grouped. p_own_id is that of internal_block, and p_is_failed one whose dedup key the caller frees.
-- promise   P01 P05 P11 P12 P15 P20 P25 P27 P36
-- locks     new rows only; with a dedup key, waits for another open enqueue of that key; as
--           internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here ids come one by one
    declare v_lane smallint default p_priority * 2 + 1;
    declare v_is_open boolean;
    declare v_is_taken boolean default false;
    declare v_state varchar(20) default 'free';
    declare v_enqueued_at datetime(6) default p_now + interval p_place microsecond;
    set p_outcome = null, p_joining = null;

    hold: loop
        if p_dedup_key is not null then
            call rowq.internal_dedup_owner(p_part_id, p_dedup_key, v_is_taken, p_message_id);
            if p_message_id is not null then
                set p_outcome = 'duplicate';
                leave hold;
            end if;
        end if;

        insert into rowq.message (
            part_id, max_attempts, enqueued_at, due_at, message_type, dedup_key, headers, body,
            body_binary, group_key, expires_at
        )
        values (
            p_part_id, p_max_attempts, v_enqueued_at, if(p_due_at > p_now, p_due_at, null),
            p_message_type, p_dedup_key, p_headers, p_body, p_body_binary, p_group_key,
            v_enqueued_at + interval round(p_expire_seconds * 1000000) microsecond
        );
        set p_message_id = last_insert_id();
        if p_dedup_key is null then
            leave hold;
        end if;

        set v_is_taken = false;
        begin
            -- Handle a duplicate key of this insert only: a message_id that is used already must
            -- stay an error.
            declare continue handler for 1062 set v_is_taken = true;
            insert into rowq.dedup (part_id, dedup_key, message_id)
            values (p_part_id, p_dedup_key, p_message_id);
        end;
        if not v_is_taken then
            leave hold;
        end if;
        -- Another producer has committed the key while this one waited for it, or the key is free
        -- again by now: look once more.
        delete from rowq.message
        where message_id = p_message_id;
    end loop;

    if p_outcome is null then
        set p_outcome = 'enqueued';
        if p_predecessor_ids is not null then
            call rowq.internal_block(
                p_part_id, p_message_id, p_place, v_lane, if(p_due_at > p_now, p_due_at, null),
                p_group_key, p_predecessor_ids, p_own_id, p_on_predecessor_dead,
                p_owns_transaction, v_state
            );
        end if;
    end if;
    set p_is_failed = v_state = 'failed';
    if p_expire_seconds is not null and p_outcome = 'enqueued' then
        insert into rowq.expiry (part_id, expires_at, expiry_id, message_id, lane, seq)
        values (
            p_part_id, v_enqueued_at + interval round(p_expire_seconds * 1000000) microsecond,
            uuid_short() & 9007199254740991, p_message_id, v_lane,
            timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
        );
    end if;
    if p_outcome = 'enqueued' and v_state = 'free' then
        select l.is_open into v_is_open
        from rowq.lane l force index (primary)
        where l.part_id = p_part_id
          and l.lane = v_lane;
        if not v_is_open then
            call rowq.internal_open_lane(p_part_id, v_lane);
        end if;

        -- Insert values and not a select, which would lock other rows under the caller's repeatable
        -- read.
        if p_due_at > p_now then
            insert into rowq.delayed (part_id, due_at, message_id, lane, group_key)
            values (p_part_id, p_due_at, p_message_id, v_lane, p_group_key);
        elseif p_group_key is not null then
            set p_joining = json_array(
                p_message_id + 0, v_lane + 0, 0, hex(p_group_key),
                timestampdiff(microsecond, '1970-01-01', v_enqueued_at)
            );
        else
            insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
            values (
                p_part_id, v_lane, timestampdiff(microsecond, '1970-01-01', v_enqueued_at),
                p_message_id, p_dedup_key is not null
            );
        end if;
    end if;
end//
delimiter ;

-- [file internal/store_batch.sql]
drop procedure if exists rowq.internal_store_batch;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_store_batch(
    p_part_id int,
    p_messages longtext,
    p_places longblob,
    p_owns_transaction boolean,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_store_batch
-- purpose   Keep the messages of a batch; returns [position, message_id, outcome] of each. p_places is null, or of published messages their places in the batch that was given, five digits each, or '' where they are the same.
-- promise   P01 P05 P12 P15 P21 P25 P26 P27 P36
-- locks     new rows; with dedup and group keys, waits as enqueue does, in the order of the keys;
--           as internal_block
-- errors    RQ711
-- differs   PostgreSQL stores a batch as a set; here ids come one by one
    declare v_place int;
    declare v_message, v_chunk, v_body, v_message_type, v_headers, v_dedup_key longtext;
    declare v_group_key, v_joining, v_all_joining longtext;
    declare v_predecessor_ids, v_positions, v_on_predecessor_dead longtext;
    declare v_stored longtext default '';
    declare v_failed, v_slice, v_ties longtext;
    declare v_body_binary longblob;
    declare v_priority, v_max_attempts int;
    declare v_delay_seconds, v_expire_seconds double;
    declare v_delay bigint;
    declare v_run_at datetime(6);
    declare v_fault varchar(120);
    declare v_message_id, v_own_id bigint;
    declare v_outcome varchar(20);
    declare v_is_end boolean default false;
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seq bigint default timestampdiff(microsecond, '1970-01-01', v_now);
    declare v_is_plain, v_is_failed boolean;
    declare v_has_places boolean
        default json_contains_path(p_messages, 'one', '$[*].predecessor_positions');
    declare v_is_in_order boolean
        default v_has_places or json_contains_path(p_messages, 'one', '$[*].group_key');
    declare v_max_body_length, v_usual_length int;
    -- Store in key order, so that two batches with the same keys cannot wait for each other; but
    -- messages of groups, and those that name others by their places, need ids in their own order,
    -- so that such a batch may meet a deadlock with another one, and is tried again. A plain
    -- message has a text body and nothing else. MySQL sorts texts by their places, but takes JSON
    -- into the sort, which then lacks memory; the limit makes it sort what was cast to text.
    declare each_message cursor for
        select h.place, h.message, h.is_plain, h.body
        from (
            select j.place, j.dedup_key, cast(j.message as char) as message,
                   coalesce(
                       json_length(j.message) = 1
                       and json_type(json_extract(j.message, '$.body')) = 'STRING',
                       false
                   ) as is_plain,
                   json_unquote(json_extract(j.message, '$.body')) as body
            from json_table(
                p_messages,
                '$[*]' columns (
                    place for ordinality,
                    message json path '$',
                    dedup_key varchar(200) path '$.dedup_key'
                )
            ) j
            limit 10000
        ) h
        order by if(v_is_in_order, null, h.dedup_key), h.place;
    declare continue handler for not found set v_is_end = true;
    -- No function returns a text that is longer than max_allowed_packet.
    declare exit handler for 1301
        call rowq.internal_refuse(
            'max_allowed_packet is too low for so many messages in one call'
        );
    set p_results = '[', v_chunk = '';

    select q.max_body_length,
           least(
               q.max_body_length, (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
           )
    into v_max_body_length, v_usual_length
    from rowq.queue q
    where q.part_id = p_part_id;

    open each_message;
    messages: loop
        fetch each_message into v_place, v_message, v_is_plain, v_body;
        if v_is_end then
            leave messages;
        end if;
        set v_is_failed = false;
        if v_is_plain and length(v_body) <= v_usual_length then
            -- This does what internal_store does for most messages, and is five times as fast. The
            -- lane of the default priority is always open, and internal_message_fault would refuse
            -- no such body.
            insert into rowq.message (part_id, enqueued_at, body)
            values (p_part_id, v_now + interval v_place microsecond, v_body);
            set v_message_id = last_insert_id(), v_outcome = 'enqueued';
            insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
            values (p_part_id, 11, v_seq + v_place, v_message_id, false);
        else
            call rowq.internal_parse_message(
                v_message, p_places is not null, v_max_body_length, v_body, v_body_binary,
                v_message_type, v_headers, v_priority, v_delay_seconds, v_run_at, v_dedup_key,
                v_max_attempts, v_group_key, v_predecessor_ids, v_positions,
                v_on_predecessor_dead, v_expire_seconds, v_fault
            );
            set v_own_id = null;
            if v_positions is not null and v_fault is null then
                call rowq.internal_batch_predecessors(
                    v_place, v_stored, v_positions, v_predecessor_ids, v_own_id, v_fault
                );
            end if;
            if v_fault is not null then
                call rowq.internal_refuse(
                    concat(
                        left(v_fault, 80), ' (message ',
                        coalesce(nullif(substring(p_places, v_place * 5 - 4, 5), '') + 0, v_place),
                        ')'
                    )
                );
            end if;
            -- The delay counts from enqueued_at, so that messages with the same delay keep their
            -- order.
            set v_delay = round(v_delay_seconds * 1000000);
            if v_delay > 0 then
                set v_delay = v_delay + v_place;
            end if;
            call rowq.internal_store(
                p_part_id, v_place, v_now, v_body, v_body_binary, v_message_type, v_headers,
                v_priority,
                coalesce(v_run_at, v_now + interval v_delay microsecond),
                v_dedup_key, v_max_attempts, v_group_key, v_predecessor_ids, v_own_id,
                v_on_predecessor_dead, v_expire_seconds, p_owns_transaction, v_message_id,
                v_outcome, v_joining, v_is_failed
            );
            if v_joining is not null then
                if length(v_all_joining) + length(v_joining) + 10 > @@max_allowed_packet then
                    -- No text is longer than a packet.
                    call rowq.internal_store_grouped(
                        p_part_id, concat('[', v_all_joining, ']')
                    );
                    set v_all_joining = null;
                end if;
                set v_all_joining = concat_ws(',', v_all_joining, v_joining);
            end if;
            if v_is_failed then
                set v_failed = concat_ws(',', v_failed, concat('[', v_message_id, ']'));
            end if;
        end if;
        set v_is_end = false;
        if v_has_places then
            set v_stored = concat(
                v_stored,
                if(v_outcome = 'enqueued' and not v_is_failed, '1', '0'),
                lpad(v_message_id, 19, '0')
            );
        end if;

        -- Build the result in pieces, because a long text is copied each time something is added to
        -- it.
        set v_chunk = concat(
            v_chunk, if(p_results = '[' and v_chunk = '', '', ','),
            '[', coalesce(nullif(substring(p_places, v_place * 5 - 4, 5), '') + 0, v_place), ',',
            v_message_id, ',"', v_outcome, '"]'
        );
        if length(v_chunk) > 5000 then
            set p_results = concat(p_results, v_chunk), v_chunk = '';
        end if;
    end loop;
    close each_message;
    if v_all_joining is not null then
        call rowq.internal_store_grouped(p_part_id, concat('[', v_all_joining, ']'));
    end if;
    -- The keys of what has failed count for the messages of this batch.
    set v_failed = concat('[', v_failed, ']');
    while v_failed is not null do
        call rowq.internal_next_slice(v_failed, v_slice);
        call rowq.internal_read_ties(v_slice, null, true, false, v_ties);
        call rowq.internal_release_dedup_keys(p_part_id, v_ties);
    end while;
    set p_results = concat(p_results, v_chunk, ']');
end//
delimiter ;

-- [file internal/store_grouped.sql]
drop procedure if exists rowq.internal_store_grouped;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_store_grouped(p_part_id int, p_messages longtext)
sql security definer
modifies sql data
begin
-- routine   internal_store_grouped
-- purpose   Let new messages of groups be ready, or wait behind others: [message_id, lane, attempt, group key in hex, seq].
-- promise   P01 P05 P21 P22
-- locks     as internal_join_groups; new ready rows
-- differs   no such helper elsewhere: part of enqueue and enqueue_batch
    declare v_waiting longtext;
    call rowq.internal_join_groups(p_part_id, p_messages, v_waiting);

    insert into rowq.ready (part_id, lane, seq, message_id)
    select p_part_id, j.lane, j.seq, j.message_id
    from json_table(
        p_messages,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            seq bigint path '$[4]'
        )
    ) j
    left join (
        select distinct w.message_id
        from json_table(v_waiting, '$[*]' columns (message_id bigint path '$')) w
    ) h on h.message_id = j.message_id
    where h.message_id is null;
end//
delimiter ;

-- [file internal/store_plain.sql]
drop procedure if exists rowq.internal_store_plain;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_store_plain(
    p_part_id int,
    p_messages longtext,
    out p_first_id bigint
)
sql security definer
modifies sql data
begin
-- routine   internal_store_plain
-- purpose   Keep a batch of plain messages in two inserts; returns the first id, or null where it kept nothing.
-- promise   P01 P05
-- locks     new rows only; the next number of message, until they are inserted
-- differs   internal_store_batch keeps every batch; this is twice as fast
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_places longtext;
    set p_first_id = null;

    -- The ids of one insert follow each other in modes 0 and 1 only. Until it ends, other producers
    -- wait for their ids, so it does not store very much.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        -- A plain message has a text body and nothing else, and internal_message_fault would refuse
        -- no such body.
        select count(*),
               sum(json_length(j.message) = 1
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   ))
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages, '$[*]' columns (message json path '$', body json path '$.body')
        ) j
        where q.part_id = p_part_id;
    end if;

    -- The lane of the default priority is always open.
    if v_count = v_plain_count then
        insert into rowq.message (part_id, enqueued_at, body)
        select p_part_id, v_now + interval j.place microsecond, json_unquote(j.body)
        from json_table(
            p_messages, '$[*]' columns (place for ordinality, body json path '$.body')
        ) j;
        set p_first_id = last_insert_id();
        -- An array of as many zeros counts them, and is read faster than the messages.
        set v_places = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
        select p_part_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.place,
               p_first_id + (j.place - 1) * @@auto_increment_increment,
               false
        from json_table(v_places, '$[*]' columns (place for ordinality)) j;
    end if;
end//
delimiter ;

-- [file internal/store_published.sql]
drop procedure if exists rowq.internal_store_published;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_store_published(
    p_part_id int,
    p_messages longtext,
    p_places longblob,
    out p_results longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_store_published
-- purpose   Keep published messages that are plain but for their topics, in two inserts; returns [position, message_id, outcome] of each as internal_store_batch does, or null where it kept nothing.
-- promise   P01 P05
-- locks     new rows only; the next number of message, until they are inserted
-- differs   internal_store_batch keeps every batch; this does what internal_store_plain does
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_count, v_plain_count int;
    declare v_first_id bigint;
    declare v_ordinals longtext;
    set p_results = null;

    -- As in internal_store_plain. A topic of other characters, or with escapes, is left to
    -- internal_store_batch.
    if @@global.innodb_autoinc_lock_mode < 2 and length(p_messages) < 1000000 then
        select count(*),
               sum(json_length(j.message) = 2
                   and left(j.body, 1) = '"'
                   and length(j.body) <= least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   )
                   and length(j.topic) between 3 and 202
                   and char_length(j.topic) = length(j.topic)
                   and j.topic regexp '\\A"[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*"\\z')
        into v_count, v_plain_count
        from rowq.queue q
        straight_join json_table(
            p_messages,
            '$[*]' columns (
                message json path '$',
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j
        where q.part_id = p_part_id;
    end if;

    if v_count = v_plain_count then
        insert into rowq.message (part_id, enqueued_at, message_type, body)
        select p_part_id, v_now + interval j.place microsecond, json_unquote(j.topic),
               json_unquote(j.body)
        from json_table(
            p_messages,
            '$[*]' columns (
                place for ordinality,
                body json path '$.body',
                topic json path '$.topic'
            )
        ) j;
        set v_first_id = last_insert_id(),
            v_ordinals = concat('[0', repeat(',0', v_count - 1), ']');
        insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
        select p_part_id, 11,
               timestampdiff(microsecond, '1970-01-01', v_now) + j.place,
               v_first_id + (j.place - 1) * @@auto_increment_increment,
               false
        from json_table(v_ordinals, '$[*]' columns (place for ordinality)) j;
        select json_arrayagg(
                   json_array(
                       coalesce(nullif(substring(p_places, j.place * 5 - 4, 5), '') + 0, j.place),
                       v_first_id + (j.place - 1) * @@auto_increment_increment,
                       'enqueued'
                   )
               )
        into p_results
        from json_table(v_ordinals, '$[*]' columns (place for ordinality)) j;
    end if;
end//
delimiter ;

-- [file internal/sweep_again.sql]
drop procedure if exists rowq.internal_sweep_again;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_sweep_again(p_part_id int)
sql security definer
modifies sql data
begin
-- routine   internal_sweep_again
-- purpose   Keep the next maintain from passing over a queue whose archive has more to be done.
-- promise   P19
-- locks     a row of lane, passed over when locked
-- commits   its own transaction where the caller has none; never the caller's
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_lane smallint;

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
            set v_lane = null;
            select l.lane into v_lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -1
            for update skip locked;
            if v_lane is not null then
                update rowq.lane l
                set l.sweep_at = '1970-01-01'
                where l.part_id = p_part_id
                  and l.lane = -1;
            end if;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;
end//
delimiter ;

-- [file internal/tick_headers.sql]
drop procedure if exists rowq.internal_tick_headers;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_tick_headers(
    p_schedule_name longtext,
    p_headers longtext,
    p_tick datetime(6),
    out p_merged longtext
)
sql security definer
no sql
begin
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
    set p_merged = json_merge_patch(
        coalesce(p_headers, '{}'),
        json_object(
            'schedule', p_schedule_name,
            'tick', date_format(p_tick, '%Y-%m-%dT%H:%i:%s.%fZ')
        )
    );
end//
delimiter ;

-- [file internal/topic_fault.sql]
drop procedure if exists rowq.internal_topic_fault;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_topic_fault(
    p_name longtext,
    p_topic longtext,
    p_is_pattern boolean,
    out p_fault varchar(120)
)
sql security definer
no sql
begin
-- routine   internal_topic_fault
-- purpose   Return what is wrong with a topic or a pattern; null means nothing.
-- promise   P15
    -- Without the count of bytes, letters of other alphabets would pass whose small letters are
    -- ours, where default_regex_flags asks to ignore case.
    set p_fault = case
        when p_topic is null
            then concat(p_name, ' is missing')
        when char_length(p_topic) > 200
            then concat(p_name, ' is longer than 200 characters')
        when p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A(([A-Za-z0-9_\\-]+|[*])[.])*([A-Za-z0-9_\\-]+|[*#])\\z'
             )
            then concat(
                p_name, ' must be words of letters, digits, _, - or *, dots between, # last'
            )
        when not p_is_pattern
             and (
                 length(p_topic) > char_length(p_topic)
                 or p_topic not regexp '\\A[A-Za-z0-9_\\-]+([.][A-Za-z0-9_\\-]+)*\\z'
             )
            then concat(p_name, ' must be words of letters, digits, _, -, with dots between')
    end;
end//
delimiter ;

-- [file internal/trim_claim.sql]
drop procedure if exists rowq.internal_trim_claim;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_trim_claim(
    p_part_id int,
    p_claim_id bigint,
    p_lease_until datetime(6),
    inout p_messages longtext,
    out p_json longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_trim_claim
-- purpose   Return a new claim's messages as one JSON array, and those that go beyond max_allowed_packet to their places.
-- promise   P02 P05 P10
-- locks     the claim row and ready rows, locked by the caller; what internal_push_dead locks
-- commits   never; call it in the transaction that took the messages
-- errors    RQ711
-- differs   elsewhere the most octets of an answer are no setting of the server
    declare v_all, v_some, v_dead longtext;
    declare v_count int default json_length(p_messages);
    declare v_first int default 1;
    declare v_last int default 0;
    declare v_size int default 100;
    set p_json = null, v_all = p_messages;

    -- Read the messages in pieces, so that those which do not fit are not read in vain. A piece
    -- that is too long is halved, down to one message.
    pieces: while v_last < v_count do
        call rowq.internal_messages_json(
            p_claim_id, p_lease_until, v_all, v_last + 1, least(v_size, v_count - v_last), v_some
        );
        -- A text that the engine has cut is up to three bytes shorter than the limit, because it
        -- cuts between characters. So leave ten bytes of room.
        if length(v_some) + coalesce(length(p_json), 0) + 10 < @@max_allowed_packet then
            set p_json = concat_ws(',', p_json, v_some),
                v_last = v_last + least(v_size, v_count - v_last);
            -- The next piece has as many messages as half of the room holds, if they are as long as
            -- those before.
            set v_size = greatest(
                v_size,
                (v_last - v_first + 1) * (@@max_allowed_packet / length(p_json) - 1) div 2
            );
        elseif v_size > 1 then
            set v_size = greatest(least(v_size, v_count - v_last) div 2, 1);
        elseif p_json is not null then
            leave pieces;
        elseif @@max_allowed_packet < @@global.max_allowed_packet then
            call rowq.internal_refuse(
                'the next message is longer than max_allowed_packet of this session: connect again'
            );
        else
            -- The server accepted this message when max_allowed_packet was larger. Declare it dead,
            -- because it must not block the others.
            set v_last = v_last + 1, v_first = v_last + 1, v_size = 100;
            select json_arrayagg(json_array(j.message_id, j.lane, j.attempt - 1)) into v_dead
            from json_table(
                v_all,
                '$[*]' columns (
                    place for ordinality,
                    message_id bigint path '$[0]',
                    lane smallint path '$[1]',
                    attempt smallint path '$[2]'
                )
            ) j
            where j.place = v_last;
            call rowq.internal_push_dead(
                p_part_id, v_dead,
                concat(
                    'not delivered: as JSON it is longer than max_allowed_packet, ',
                    @@max_allowed_packet, '; raise that on the server, then reset the message'
                ),
                true
            );
        end if;
    end while;
    set p_json = concat('[', p_json, ']');

    if v_first > 1 or v_last < v_count then
        call rowq.internal_return_ready(p_part_id, v_all, v_last);
        set p_messages = null;
        select json_arrayagg(json_array(j.message_id, j.lane, j.attempt, j.seq)) into p_messages
        from json_table(
            v_all,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                lane smallint path '$[1]',
                attempt smallint path '$[2]',
                seq bigint path '$[3]'
            )
        ) j
        where j.place between v_first and v_last;
        if p_messages is null then
            delete c
            from rowq.claim c force index (primary)
            where c.part_id = p_part_id
              and c.claim_id = p_claim_id;
        else
            update rowq.claim c force index (primary)
            set c.messages = p_messages
            where c.part_id = p_part_id
              and c.claim_id = p_claim_id;
        end if;
    end if;
end//
delimiter ;

-- [file internal/try_enter_group.sql]
drop procedure if exists rowq.internal_try_enter_group;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_try_enter_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_has_token boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_try_enter_group
-- purpose   Do what internal_enter_group does, but return null where that takes longer than a moment.
-- promise   P22
-- locks     as internal_enter_group, not waited for on MariaDB, for a second at most on MySQL
-- differs   the shortest wait that MySQL has is a second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare exit handler for 1205
    begin
        set session innodb_lock_wait_timeout = v_patience;
        if @@innodb_rollback_on_timeout then
            resignal;
        end if;
        set p_has_token = null;
    end;
    declare exit handler for sqlexception
    begin
        set session innodb_lock_wait_timeout = v_patience;
        resignal;
    end;
    set p_has_token = null;

    if p_owns_transaction or
       /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */
           in ('READ-COMMITTED', 'READ-UNCOMMITTED') then
        set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
        call rowq.internal_enter_group(p_part_id, p_group_key, p_has_token);
        set session innodb_lock_wait_timeout = v_patience;
    end if;
end//
delimiter ;

-- [file internal/try_unblock.sql]
drop procedure if exists rowq.internal_try_unblock;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_try_unblock(
    p_part_id int,
    p_message_id bigint,
    p_ended_id bigint,
    p_owns_transaction boolean,
    inout p_is_late boolean,
    out p_state varchar(20),
    out p_next varchar(80)
)
sql security definer
modifies sql data
begin
-- routine   internal_try_unblock
-- purpose   Look again what a blocked message waits for, whose row the caller has locked: again, waiting, moved, ready or failed; p_next is one that is ready, as [message_id, lane, attempt], or one that fails, with the predecessor that is dead behind that.
-- promise   P25 P26 P27
-- locks     as internal_await_predecessor and internal_try_enter_group; the message row, tried only
-- differs   PostgreSQL does it in internal_unblock
    declare v_lane smallint;
    declare v_predecessor_id, v_dead_id, v_shown_id, v_locked_id bigint;
    declare v_due_at datetime(6);
    declare v_on_dead varchar(20);
    declare v_group_key varbinary(800);
    declare v_rest_ids, v_ids longtext;
    declare v_is_fresh, v_is_delayed boolean;
    declare v_has_token boolean default true;
    set p_state = 'free', p_next = null;

    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.rest_ids
    into v_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_rest_ids
    from rowq.blocked b force index (primary)
    where b.part_id = p_part_id
      and b.message_id = p_message_id
    for update;

    set v_ids = v_rest_ids;
    if v_predecessor_id is not null and not v_predecessor_id <=> p_ended_id then
        set v_ids = if(
            v_rest_ids is null,
            concat('[', v_predecessor_id, ']'),
            concat('[', v_predecessor_id, ',', substring(v_rest_ids, 2))
        );
    end if;
    if v_ids is not null then
        -- A snapshot that shows the message shows what it waits for, too, unless that has ended.
        if not p_owns_transaction then
            select m.message_id into v_shown_id
            from rowq.message m force index (primary)
            where m.message_id = p_message_id;
        end if;
        set v_is_fresh = p_owns_transaction or v_shown_id is not null;
        call rowq.internal_await_predecessor(
            p_part_id, p_message_id, v_ids, v_on_dead, v_is_fresh, p_owns_transaction,
            p_state, v_dead_id, v_rest_ids
        );
    end if;
    set v_is_delayed = coalesce(v_due_at > utc_timestamp(6), false);

    if p_state = 'waiting' then
        update rowq.blocked b force index (primary)
        set b.predecessor_id = v_dead_id,
            b.rest_ids = v_rest_ids
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    elseif p_state = 'failed' then
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        select m.message_id into v_locked_id
        from rowq.message m force index (primary)
        where m.message_id = p_message_id
        for update skip locked;
        if v_locked_id is null then
            set p_state = 'again';
        else
            set p_next = json_array(p_message_id + 0, v_lane + 0, 0, v_dead_id + 0);
        end if;
    elseif p_state = 'free' and v_is_delayed then
        insert into rowq.delayed (part_id, due_at, message_id, lane, group_key)
        values (p_part_id, v_due_at, p_message_id, v_lane, v_group_key);
        set p_state = 'moved';
    elseif p_state = 'free' and v_group_key is not null then
        -- Wait for a producer once a call, and no longer than a moment.
        set v_has_token = null;
        if not p_is_late then
            call rowq.internal_try_enter_group(
                p_part_id, v_group_key, p_owns_transaction, v_has_token
            );
        end if;
        if v_has_token is null then
            set p_is_late = true, p_state = 'again';
        elseif v_has_token then
            -- Groups take turns.
            set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane + 0, 0);
        else
            insert into rowq.grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_group_key, p_message_id, v_lane);
            set p_state = 'moved';
        end if;
    elseif p_state = 'free' then
        -- What has been begun is finished first.
        set p_state = 'ready', p_next = json_array(p_message_id + 0, v_lane div 2 * 2, 0);
    else
        set p_state = 'again';
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq.blocked
        where part_id = p_part_id
          and message_id = p_message_id;
    end if;
end//
delimiter ;

-- [file internal/unblock.sql]
drop procedure if exists rowq.internal_unblock;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_unblock(
    p_part_id int,
    p_message_ids longtext,
    p_ended_id bigint,
    p_owns_transaction boolean,
    out p_again longtext,
    out p_failed longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. p_again are the ids of those that need another look, p_failed those that fail: [message_id, lane, attempt, the predecessor that is dead].
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as internal_try_unblock; new ready rows
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_seen, v_held, v_free, v_ready longtext;
    declare v_message_id bigint;
    declare v_state varchar(20);
    declare v_next varchar(80);
    declare v_is_late, v_is_end boolean default false;
    declare each_other cursor for
        select j.message_id
        from json_table(
            v_held, '$[*]' columns (message_id bigint path '$[0]', is_free int path '$[3]')
        ) j
        where not j.is_free;
    declare continue handler for not found set v_is_end = true;
    set p_again = null, p_failed = null;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked.
    select json_arrayagg(b.message_id) into v_seen
    from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
    straight_join rowq.blocked b force index (primary)
        on b.part_id = p_part_id
       and b.message_id = j.message_id;
    if v_seen is not null then
        -- What has been begun is finished first, so these go to the front of their priorities.
        select json_arrayagg(json_array(h.message_id, h.lane div 2 * 2, 0, h.is_free)) into v_held
        from (
            select b.message_id, b.lane,
                   if(
                       b.predecessor_id <=> p_ended_id
                       and b.rest_ids is null
                       and b.group_key is null
                       and coalesce(b.due_at <= v_now, true),
                       1, 0
                   ) as is_free
            from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
            straight_join rowq.blocked b force index (primary)
                on b.part_id = p_part_id
               and b.message_id = j.message_id
            limit 1000000
            for update /*!80000 of b */ skip locked
        ) h;

        -- Somebody is cancelling the others, perhaps.
        select json_arrayagg(j.message_id) into p_again
        from json_table(v_seen, '$[*]' columns (message_id bigint path '$')) j
        left join (
            select distinct x.message_id
            from json_table(v_held, '$[*]' columns (message_id bigint path '$[0]')) x
        ) h on h.message_id = j.message_id
        where h.message_id is null;
    end if;

    open each_other;
    set v_is_end = false;
    messages: loop
        fetch each_other into v_message_id;
        if v_is_end then
            leave messages;
        end if;
        call rowq.internal_try_unblock(
            p_part_id, v_message_id, p_ended_id, p_owns_transaction, v_is_late, v_state, v_next
        );
        set v_is_end = false;
        if v_state = 'again' then
            set p_again = json_array_append(coalesce(p_again, '[]'), '$', v_message_id + 0);
        elseif v_state = 'failed' then
            set p_failed = concat_ws(',', p_failed, v_next);
        elseif v_state = 'ready' then
            set v_ready = concat_ws(',', v_ready, v_next);
        end if;
    end loop;
    close each_other;
    set p_failed = concat('[', p_failed, ']'), v_ready = concat('[', v_ready, ']');

    select json_arrayagg(json_array(j.message_id, j.lane, 0)) into v_free
    from json_table(
        v_held,
        '$[*]' columns (
            message_id bigint path '$[0]',
            lane smallint path '$[1]',
            is_free int path '$[3]'
        )
    ) j
    where j.is_free;
    if v_free is not null then
        delete b
        from json_table(v_free, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.blocked b force index (primary)
            on b.part_id = p_part_id
           and b.message_id = j.message_id;
    end if;
    if v_free is not null and v_ready is not null then
        -- They go on in the order of their numbers.
        select json_arrayagg(json_array(h.message_id, h.lane, 0)) into v_ready
        from (
            select j.message_id, j.lane
            from json_table(
                json_merge_preserve(v_free, v_ready),
                '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
            ) j
            order by j.message_id
            limit 1000000
        ) h;
    end if;
    if v_free is not null or v_ready is not null then
        call rowq.internal_push_ready(p_part_id, coalesce(v_ready, v_free));
    end if;
end//
delimiter ;

-- [file internal/unpin_session.sql]
drop procedure if exists rowq.internal_unpin_session;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_unpin_session()
sql security definer
modifies sql data
begin
-- routine   internal_unpin_session
-- purpose   Give the session back the values that internal_pin_session has put aside.
-- promise   P17
-- differs   elsewhere nothing is pinned
    if @rowq_pinned then
        set @rowq_pinned = null;
        set session unique_checks = @rowq_unique_checks,
            sql_safe_updates = @rowq_safe_updates,
            sql_big_selects = @rowq_big_selects,
            /*M!100600 max_error_count = @rowq_max_error_count, */
            /*M!100600 group_concat_max_len = @rowq_group_concat_max_len, */
            /*M!100600 tmp_disk_table_size = @rowq_tmp_disk_table_size, */
            /*M!100600 default_regex_flags = @rowq_regex_flags, */
            /*M!110602 innodb_snapshot_isolation = @rowq_snapshot_isolation, */
            /*!80000 information_schema_stats_expiry = @rowq_stats_expiry, */
            sort_buffer_size = @rowq_sort_buffer_size;
        /*M!100600
        if @rowq_insert_id <> 0 then
            set session insert_id = @rowq_insert_id;
        end if;
        */
        if @@auto_increment_increment <> @rowq_increment then
            set session auto_increment_increment = @rowq_increment;
        end if;
        if @@auto_increment_offset <> @rowq_offset then
            set session auto_increment_offset = @rowq_offset;
        end if;
        /*M!100600
        if @rowq_skip_replication then
            set session skip_replication = 1;
        end if;
        */
        if @rowq_timestamp is not null then
            set session timestamp = @rowq_timestamp;
        end if;
    end if;
end//
delimiter ;

-- [file internal/wait.sql]
drop procedure if exists rowq.internal_wait;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_wait(
    p_part_id int,
    p_until datetime(6),
    inout p_pause double
)
sql security definer
modifies sql data
begin
-- routine   internal_wait
-- purpose   Let a waiter of dequeue_wait sleep until its next look, p_until at the latest.
-- promise   P17
-- locks     a row of lane while it sleeps, passed over when locked
-- commits   each statement by itself; call it outside transactions
-- differs   elsewhere waiters are woken, or a lock of the session elects one
    declare v_look_at datetime(6) default least(p_until, utc_timestamp(6) + interval 1 second);
    declare v_left double;
    declare v_slept, v_interrupted int;

    -- One waiter of a queue looks at it ten times a second: the one that found the row of lane -4
    -- free and holds it while it sleeps. The others try that row four times a second, and look at
    -- the queue once a second.
    naps: while v_slept is null and utc_timestamp(6) < v_look_at do
        set v_left = timestampdiff(microsecond, utc_timestamp(6), v_look_at) / 1000000;
        -- The lock lasts as long as this statement, and ends with a session that is killed. Without
        -- "limit 1" the engine would read the row first, give up its lock and only then sleep.
        select sleep(least(p_pause, v_left)) into v_slept
        from (
            select l.lane
            from rowq.lane l force index (primary)
            where l.part_id = p_part_id
              and l.lane = -4
            limit 1
            for update skip locked
        ) h;
        if v_slept is null then
            set v_interrupted = sleep(least(0.25, v_left));
        else
            set v_interrupted = v_slept, p_pause = least(p_pause * 2, 0.1);
        end if;
        if v_interrupted then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end while;
end//
delimiter ;

-- [file internal/widen_group.sql]
drop procedure if exists rowq.internal_widen_group;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_widen_group(
    p_part_id int,
    p_group_key varbinary(800),
    p_owns_transaction boolean,
    out p_is_done boolean
)
sql security definer
modifies sql data
begin
-- routine   internal_widen_group
-- purpose   Give a group whose limit was raised its new tokens; p_is_done is false where another look is needed.
-- promise   P22 P24
-- locks     as internal_try_enter_group and internal_leave_groups
    declare v_first_id bigint;
    declare v_lane smallint;
    declare v_has_token boolean default true;

    tokens: while v_has_token do
        set v_first_id = null;
        select g.message_id, g.lane into v_first_id, v_lane
        from rowq.grouped g force index (primary)
        where g.part_id = p_part_id
          and g.group_key = p_group_key
        order by g.part_id, g.group_key, g.message_id
        limit 1;
        if v_first_id is null then
            leave tokens;
        end if;
        call rowq.internal_try_enter_group(
            p_part_id, p_group_key, p_owns_transaction, v_has_token
        );
        if v_has_token then
            call rowq.internal_leave_groups(
                p_part_id, json_array(json_array(v_first_id, hex(p_group_key))),
                p_owns_transaction
            );
        end if;
    end while;
    set p_is_done = v_has_token is not null;
end//
delimiter ;

-- [file internal/withdraw.sql]
drop procedure if exists rowq.internal_withdraw;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.internal_withdraw(
    p_part_id int,
    p_message_ids longtext,
    p_owns_transaction boolean,
    out p_messages longtext
)
sql security definer
modifies sql data
begin
-- routine   internal_withdraw
-- purpose   Cancel those messages that no worker holds, and return them; null where there is none.
-- promise   P03 P12 P22
-- locks     as internal_pop_waiting, then as internal_finish
    declare v_archive_days int;
    declare v_tokenless, v_keyless longtext;

    call rowq.internal_pop_waiting(
        p_part_id, p_message_ids, p_messages, v_tokenless, v_keyless
    );
    if p_messages is not null then
        select q.archive_days into v_archive_days
        from rowq.queue q
        where q.part_id = p_part_id;
        call rowq.internal_finish(
            p_part_id, v_archive_days, true, p_messages, v_tokenless, v_keyless,
            p_owns_transaction, 'cancelled'
        );
    end if;
end//
delimiter ;

-- [file routines/create_queue.sql]
drop procedure if exists rowq.create_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.create_queue(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
comment 'Create a queue; an existing queue of that name is left as it is.'
begin
-- routine   create_queue
-- version   1
-- purpose   Create a queue; an existing queue of that name is left as it is.
-- promise   P15
-- locks     the new queue row and the rows of its part
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_outcome varchar(20);

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
            if v_outcome is null then
                -- Pin the session, because auto_increment_increment must not waste the numbers of
                -- queues, of which there are few.
                call rowq.internal_pin_session(@@timestamp);
            end if;
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_settings(
                p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
                p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
                p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
                p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
                p_history_days
            );

            set v_part_id = null, v_outcome = 'exists';
            -- Look first, because an insert that ends in a conflict uses up a number.
            select q.part_id into v_part_id
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                begin
                    -- Another session has made the queue while this one waited for it. If there is
                    -- no queue of that name, part_id was the duplicate, and that stays an error.
                    declare exit handler for 1062
                    begin
                        select q.part_id into v_part_id
                        from rowq.queue q
                        where q.queue_name = cast(p_queue_name as binary)
                        lock in share mode;
                        if v_part_id is null then
                            resignal;
                        end if;
                    end;
                    insert into rowq.queue (
                        queue_name, lease_seconds, max_attempts, backoff_base_seconds,
                        backoff_factor, backoff_cap_seconds, backoff_jitter, archive_days,
                        max_body_length, group_limit, group_after_dead, group_pause_seconds,
                        max_leased, rate_limit, rate_seconds, has_started, result_seconds,
                        has_results, history_days, has_history, created_at
                    )
                    values (
                        cast(p_queue_name as binary), coalesce(p_lease_seconds, 30),
                        coalesce(p_max_attempts, 10), coalesce(p_backoff_base_seconds, 5),
                        coalesce(p_backoff_factor, 2), coalesce(p_backoff_cap_seconds, 3600),
                        coalesce(p_backoff_jitter, 0.2), coalesce(p_archive_days, 0),
                        coalesce(p_max_body_length, 1048576), coalesce(p_group_limit, 1),
                        coalesce(p_group_after_dead, 'continue'),
                        coalesce(p_group_pause_seconds, 0), coalesce(p_max_leased, 0),
                        coalesce(p_rate_limit, 0), coalesce(p_rate_seconds, 1),
                        coalesce(p_rate_limit, 0) > 0, coalesce(p_result_seconds, 0),
                        coalesce(p_result_seconds, 0) > 0, coalesce(p_history_days, 0),
                        coalesce(p_history_days, 0) > 0, utc_timestamp(6)
                    );
                    set v_outcome = 'created';
                end;
                if v_outcome = 'created' then
                    call rowq.internal_add_part(last_insert_id());
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, v_outcome as outcome;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/alter_queue.sql]
drop procedure if exists rowq.alter_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.alter_queue(
    p_queue_name longtext,
    p_lease_seconds int,
    p_max_attempts int,
    p_backoff_base_seconds double,
    p_backoff_factor double,
    p_backoff_cap_seconds double,
    p_backoff_jitter double,
    p_archive_days int,
    p_max_body_length int,
    p_group_limit int,
    p_group_after_dead longtext,
    p_group_pause_seconds double,
    p_max_leased int,
    p_rate_limit int,
    p_rate_seconds double,
    p_result_seconds double,
    p_history_days int
)
sql security definer
modifies sql data
comment 'Change settings of a queue; null leaves a setting as it is.'
begin
-- routine   alter_queue
-- version   1
-- purpose   Change settings of a queue; null leaves a setting as it is.
-- promise   P15
-- locks     the queue row; new recheck rows; where max_leased is new, a row of lane
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_group_limit, v_max_leased int;

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

            call rowq.internal_check_settings(
                p_queue_name, p_lease_seconds, p_max_attempts, p_backoff_base_seconds,
                p_backoff_factor, p_backoff_cap_seconds, p_backoff_jitter, p_archive_days,
                p_max_body_length, p_group_limit, p_group_after_dead, p_group_pause_seconds,
                p_max_leased, p_rate_limit, p_rate_seconds, p_result_seconds,
                p_history_days
            );

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            -- Read the row again with a lock, because the queue may be dropped while this call
            -- waits for it.
            set v_part_id = null;
            select q.part_id, q.group_limit, q.max_leased
            into v_part_id, v_group_limit, v_max_leased
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary)
            for update;
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            update rowq.queue q
            set q.lease_seconds        = coalesce(p_lease_seconds, q.lease_seconds),
                q.max_attempts         = coalesce(p_max_attempts, q.max_attempts),
                q.backoff_base_seconds = coalesce(p_backoff_base_seconds, q.backoff_base_seconds),
                q.backoff_factor       = coalesce(p_backoff_factor, q.backoff_factor),
                q.backoff_cap_seconds  = coalesce(p_backoff_cap_seconds, q.backoff_cap_seconds),
                q.backoff_jitter       = coalesce(p_backoff_jitter, q.backoff_jitter),
                q.archive_days         = coalesce(p_archive_days, q.archive_days),
                q.max_body_length      = coalesce(p_max_body_length, q.max_body_length),
                q.group_limit          = coalesce(p_group_limit, q.group_limit),
                q.group_after_dead     = coalesce(p_group_after_dead, q.group_after_dead),
                q.group_pause_seconds  = coalesce(p_group_pause_seconds, q.group_pause_seconds),
                q.max_leased           = coalesce(p_max_leased, q.max_leased),
                q.rate_limit           = coalesce(p_rate_limit, q.rate_limit),
                q.rate_seconds         = coalesce(p_rate_seconds, q.rate_seconds),
                q.has_started          = q.has_started or coalesce(p_rate_limit, 0) > 0,
                q.result_seconds       = coalesce(p_result_seconds, q.result_seconds),
                q.has_results          = q.has_results or coalesce(p_result_seconds, 0) > 0,
                q.history_days         = coalesce(p_history_days, q.history_days),
                q.has_history          = q.has_history or coalesce(p_history_days, 0) > 0
            where q.part_id = v_part_id;
            if p_group_limit > v_group_limit then
                call rowq.internal_hint_groups(v_part_id);
            end if;
            if p_max_leased > 0 and v_max_leased = 0 then
                -- While there was no limit nobody cared for this floor.
                update rowq.lane l
                set l.floor = 0
                where l.part_id = v_part_id
                  and l.lane = -7;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'altered' as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/drop_queue.sql]
drop procedure if exists rowq.drop_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.drop_queue(p_queue_name longtext, p_force boolean)
sql security definer
modifies sql data
comment 'Remove an empty queue, or with force a queue and everything in it, archive included.'
begin
-- routine   drop_queue
-- version   1
-- purpose   Remove an empty queue, or with force a queue and everything in it, archive included.
-- promise   P02 P15
-- locks     the part for itself, all rows of the queue, waiting for a second at most
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ704 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_remove_queue(v_part_id, p_queue_name, coalesce(p_force, false));

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'dropped' as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/pause_queue.sql]
drop procedure if exists rowq.pause_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.pause_queue(p_queue_name longtext)
sql security definer
modifies sql data
comment 'Stop delivery; enqueue and the finishing routines go on.'
begin
-- routine   pause_queue
-- version   1
-- purpose   Stop delivery; enqueue and the finishing routines go on.
-- promise   P18
-- locks     the queue row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            -- Read the row again with a lock, because the queue may be dropped while this call
            -- waits for it.
            set v_part_id = null;
            select q.part_id into v_part_id
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary)
            for update;
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            update rowq.queue q
            set q.paused_at = coalesce(q.paused_at, utc_timestamp(6))
            where q.part_id = v_part_id;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'paused' as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/resume_queue.sql]
drop procedure if exists rowq.resume_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.resume_queue(p_queue_name longtext)
sql security definer
modifies sql data
comment 'Start delivery again.'
begin
-- routine   resume_queue
-- version   1
-- purpose   Start delivery again.
-- promise   P18
-- locks     the queue row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            -- Read the row again with a lock, because the queue may be dropped while this call
            -- waits for it.
            set v_part_id = null;
            select q.part_id into v_part_id
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary)
            for update;
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            update rowq.queue q
            set q.paused_at = null
            where q.part_id = v_part_id;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, 'resumed' as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/bind_topic.sql]
drop procedure if exists rowq.bind_topic;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.bind_topic(p_queue_name longtext, p_topic_pattern longtext)
sql security definer
modifies sql data
comment 'Let a queue get what is published under the topics that a pattern matches.'
begin
-- routine   bind_topic
-- version   1
-- purpose   Let a queue get what is published under the topics that a pattern matches.
-- promise   P15 P35
-- locks     the part, shared; a new topic_binding row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_words varchar(200);
    declare v_outcome varchar(20);
    declare v_fault varchar(120);

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

            call rowq.internal_topic_fault('topic_pattern', p_topic_pattern, true, v_fault);
            if v_fault is not null then
                call rowq.internal_refuse(v_fault);
            end if;
            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);

            set v_outcome = 'bound',
                v_words = trim(trailing '.' from trim(trailing '#' from p_topic_pattern));
            begin
                declare continue handler for 1062 set v_outcome = 'exists';
                insert into rowq.topic_binding (
                    part_id, topic_pattern, word_count, has_rest, literal_head, like_pattern
                )
                values (
                    v_part_id, p_topic_pattern,
                    if(
                        v_words = '', 0,
                        char_length(v_words) - char_length(replace(v_words, '.', '')) + 1
                    ),
                    right(p_topic_pattern, 1) = '#',
                    trim(trailing '.' from substring_index(v_words, '*', 1)),
                    if(
                        locate('*', v_words) > 0,
                        replace(replace(v_words, '_', '!_'), '*', '%'), null
                    )
                );
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/unbind_topic.sql]
drop procedure if exists rowq.unbind_topic;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.unbind_topic(p_queue_name longtext, p_topic_pattern longtext)
sql security definer
modifies sql data
comment 'Take a queue''s pattern away; what it has got stays.'
begin
-- routine   unbind_topic
-- version   1
-- purpose   Take a queue's pattern away; what it has got stays.
-- promise   P15 P35
-- locks     the part, shared; the topic_binding row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_outcome varchar(20);
    declare v_fault varchar(120);

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

            call rowq.internal_topic_fault('topic_pattern', p_topic_pattern, true, v_fault);
            if v_fault is not null then
                call rowq.internal_refuse(v_fault);
            end if;
            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);

            delete b
            from rowq.topic_binding b force index (primary)
            where b.part_id = v_part_id
              and b.topic_pattern = cast(p_topic_pattern as binary);
            set v_outcome = if(row_count() > 0, 'unbound', 'not_bound');

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_queue_name as queue_name, p_topic_pattern as topic_pattern, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/purge_queue.sql]
drop procedure if exists rowq.purge_queue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.purge_queue(p_queue_name longtext, p_include_dead boolean, p_max_messages int)
sql security definer
modifies sql data
comment 'Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.'
begin
-- routine   purge_queue
-- version   1
-- purpose   Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.
-- promise   P15
-- locks     the part, shared; blocked, grouped, ready, delayed and dead rows, passing over locked
--           ones; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_blocked, v_grouped, v_ready, v_delayed, v_dead bigint default 0;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- The wait for a producer ends with the session's innodb_lock_wait_timeout. A
                    -- caller whose whole transaction ends with it gets the engine's own error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction holds a message; try again';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            -- A session that is not pinned may cut what json_arrayagg returns at a megabyte: let
            -- the lists of many messages have room.
            /*M!100600 call rowq.internal_pin_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_range('max_messages', p_max_messages, 1, 10000);

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            -- Begin with what waits for others, so that none of it is made ready by the end of what
            -- it waits for, and no token is passed on to a message that goes too.
            call rowq.internal_purge_blocked(
                v_part_id, p_max_messages, v_owns_transaction, v_blocked
            );
            call rowq.internal_purge_grouped(
                v_part_id, p_max_messages - v_blocked, v_owns_transaction, v_grouped
            );
            set v_blocked = v_blocked + v_grouped;
            call rowq.internal_purge_ready(
                v_part_id, p_max_messages - v_blocked, v_owns_transaction, v_ready
            );
            call rowq.internal_purge_waiting(
                v_part_id, false, p_max_messages - v_blocked - v_ready, v_owns_transaction,
                v_delayed
            );
            if p_include_dead then
                call rowq.internal_purge_waiting(
                    v_part_id, true, p_max_messages - v_blocked - v_ready - v_delayed,
                    v_owns_transaction, v_dead
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_blocked + v_ready + v_delayed + v_dead as removed;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/enqueue.sql]
drop procedure if exists rowq.enqueue;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.enqueue(
    p_queue_name longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_predecessor_ids longtext,
    p_on_predecessor_dead longtext,
    p_expire_seconds double
)
sql security definer
modifies sql data
comment 'Hand over one message.'
begin
-- routine   enqueue
-- version   1
-- purpose   Hand over one message.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P27 P36
-- locks     new rows; the part, shared; with a dedup key, waits for another open enqueue of it;
--           with a group key, for one that has opened the group, and for what is closing it; the
--           row of a predecessor, tried only
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction, v_is_plain, v_is_failed boolean;
    declare v_tries_left int default 5;
    declare v_fault varchar(120);
    declare v_part_id, v_max_body_length, v_usual_length int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);
    declare v_joining varchar(2000);
    declare v_ties longtext;

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

            set v_part_id = null;
            select q.part_id, q.max_body_length,
                   least(
                       q.max_body_length,
                       (cast(@@global.max_allowed_packet as signed) - 1600000) div 6
                   )
            into v_part_id, v_max_body_length, v_usual_length
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);

            -- A plain message has a text body and nothing else, and internal_message_fault would
            -- refuse no such body. So it is stored here, in two inserts: the time of a call is the
            -- number of its kinds of statement. The lane of the default priority is always open.
            set v_is_plain = v_part_id is not null
                and coalesce(length(p_body) <= v_usual_length, false)
                and locate(x'ED', cast(p_body as binary)) = 0
                and coalesce(p_priority, 5) = 5
                and coalesce(
                    p_body_binary, p_message_type, p_headers, p_delay_seconds, p_run_at,
                    p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids,
                    p_on_predecessor_dead, p_expire_seconds
                ) is null;
            if not v_is_plain then
                call rowq.internal_message_fault(
                    p_body, p_body_binary, p_message_type, p_headers, p_priority,
                    p_delay_seconds, p_run_at, p_dedup_key, p_max_attempts, p_group_key,
                    p_predecessor_ids, p_on_predecessor_dead, p_expire_seconds,
                    v_max_body_length, v_fault
                );
                if v_fault is not null then
                    call rowq.internal_refuse(v_fault);
                end if;
                if v_part_id is null then
                    call rowq.internal_refuse_queue(p_queue_name);
                end if;
            end if;

            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            set v_now = utc_timestamp(6);
            if v_is_plain then
                insert into rowq.message (part_id, enqueued_at, body)
                values (v_part_id, v_now, p_body);
                set v_message_id = last_insert_id(), v_outcome = 'enqueued';
                insert into rowq.ready (part_id, lane, seq, message_id, is_keyed)
                values (
                    v_part_id, 11, timestampdiff(microsecond, '1970-01-01', v_now),
                    v_message_id, false
                );
            else
                call rowq.internal_store(
                    v_part_id, 0, v_now, p_body, p_body_binary, p_message_type, p_headers,
                    coalesce(p_priority, 5),
                    coalesce(
                        p_run_at, v_now + interval round(p_delay_seconds * 1000000) microsecond
                    ),
                    p_dedup_key, p_max_attempts, p_group_key, p_predecessor_ids, null,
                    p_on_predecessor_dead, p_expire_seconds, v_owns_transaction, v_message_id,
                    v_outcome, v_joining, v_is_failed
                );
                if v_joining is not null then
                    call rowq.internal_store_grouped(v_part_id, concat('[', v_joining, ']'));
                end if;
                if v_is_failed then
                    call rowq.internal_read_ties(
                        concat('[[', v_message_id, ']]'), null, true, false, v_ties
                    );
                    call rowq.internal_release_dedup_keys(v_part_id, v_ties);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_message_id as message_id, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/enqueue_batch.sql]
drop procedure if exists rowq.enqueue_batch;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.enqueue_batch(p_queue_name longtext, p_messages longtext)
sql security definer
modifies sql data
comment 'Hand over many messages in one call: all of them or, on an error, none.'
begin
-- routine   enqueue_batch
-- version   1
-- purpose   Hand over many messages in one call: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P25 P26 P27 P36
-- locks     new rows; the part, shared; with keys, waits as enqueue does, in the order of the keys;
--           rows of predecessors, tried only
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_first_id bigint;
    declare v_results longtext;

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

            begin
                -- MySQL raises 3157 for JSON that is nested more than 100 deep.
                declare exit handler for 3157
                    call rowq.internal_refuse(
                        'messages must be JSON that is nested less than 100 deep'
                    );
                if p_queue_name is null then
                    call rowq.internal_refuse_queue(p_queue_name);
                elseif coalesce(not json_valid(p_messages), true) then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif left(p_messages, 1) <> '[' and json_type(p_messages) <> 'ARRAY'
                       or json_length(p_messages) > 10000 then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif locate(x'ED', cast(p_messages as binary)) > 0 then
                    call rowq.internal_check_text('messages', p_messages);
                end if;
            end;

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_store_plain(v_part_id, p_messages, v_first_id);
            if v_first_id is null then
                call rowq.internal_store_batch(
                    v_part_id, p_messages, null, v_owns_transaction, v_results
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if v_first_id is not null then
        select j.place as `position`,
               v_first_id + (j.place - 1) * @@auto_increment_increment as message_id,
               'enqueued' as outcome
        from json_table(p_messages, '$[*]' columns (place for ordinality)) j;
    else
        select j.place as `position`, j.message_id, j.outcome
        from json_table(
            v_results,
            '$[*]' columns (
                place int path '$[0]',
                message_id bigint path '$[1]',
                outcome varchar(20) path '$[2]'
            )
        ) j
        order by j.place;
    end if;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/publish.sql]
drop procedure if exists rowq.publish;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.publish(
    p_topic longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_delay_seconds double,
    p_run_at datetime(6),
    p_dedup_key longtext,
    p_max_attempts int,
    p_group_key longtext,
    p_expire_seconds double
)
sql security definer
modifies sql data
comment 'Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.'
begin
-- routine   publish
-- version   1
-- purpose   Hand over one message to each queue that is bound to a topic, in the order of their names; to none where none is. Without a message_type it is the topic.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; new rows, and with keys waits as enqueue does, queue by queue
--           in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction, v_is_failed boolean;
    declare v_tries_left int default 5;
    declare v_fault varchar(120);
    declare v_queues, v_results longtext;
    declare v_at, v_part_id, v_max_body_length int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);
    declare v_joining varchar(2000);

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

            call rowq.internal_topic_fault('topic', p_topic, false, v_fault);
            if v_fault is not null then
                call rowq.internal_refuse(v_fault);
            end if;
            call rowq.internal_bound_queues(
                json_array(json_object('topic', p_topic)), v_queues
            );
            -- Each queue must take the body. What else is wrong is refused where none is bound,
            -- too.
            select coalesce(min(j.max_body_length), 33554432) into v_max_body_length
            from json_table(v_queues, '$[*]' columns (max_body_length int path '$[2]')) j;
            call rowq.internal_message_fault(
                p_body, p_body_binary, p_message_type, p_headers, p_priority, p_delay_seconds,
                p_run_at, p_dedup_key, p_max_attempts, p_group_key, null, null,
                p_expire_seconds, v_max_body_length, v_fault
            );
            if v_fault is not null then
                call rowq.internal_refuse(v_fault);
            end if;

            set v_at = 0, v_results = '[]', v_now = utc_timestamp(6);
            while v_at < json_length(v_queues) do
                set v_part_id = json_extract(v_queues, concat('$[', v_at, '][0]'));
                call rowq.internal_store(
                    v_part_id, 0, v_now, p_body, p_body_binary, coalesce(p_message_type, p_topic),
                    p_headers, coalesce(p_priority, 5),
                    coalesce(
                        p_run_at, v_now + interval round(p_delay_seconds * 1000000) microsecond
                    ),
                    p_dedup_key, p_max_attempts, p_group_key, null, null, null,
                    p_expire_seconds, v_owns_transaction, v_message_id, v_outcome, v_joining,
                    v_is_failed
                );
                if v_joining is not null then
                    call rowq.internal_store_grouped(v_part_id, concat('[', v_joining, ']'));
                end if;
                set v_results = json_array_append(
                        v_results, '$',
                        json_array(
                            json_unquote(json_extract(v_queues, concat('$[', v_at, '][1]'))),
                            v_message_id, v_outcome
                        )
                    ),
                    v_at = v_at + 1;
            end while;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select convert(unhex(j.queue_name) using utf8mb4) as queue_name, j.message_id, j.outcome
    from json_table(
        v_results,
        '$[*]' columns (
            place for ordinality,
            queue_name varchar(800) path '$[0]',
            message_id bigint path '$[1]',
            outcome varchar(20) path '$[2]'
        )
    ) j
    order by j.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/publish_batch.sql]
drop procedure if exists rowq.publish_batch;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.publish_batch(p_messages longtext)
sql security definer
modifies sql data
comment 'Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.'
begin
-- routine   publish_batch
-- version   1
-- purpose   Do what publish does with many messages in one call, queue by queue: all of them or, on an error, none.
-- promise   P01 P05 P11 P12 P15 P20 P21 P22 P35 P36
-- locks     as internal_bound_queues; new rows, and with keys waits as enqueue_batch does, queue by
--           queue in the order of their names
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_queues, v_picked, v_results, v_all_results longtext;
    declare v_picked_places, v_names longblob;
    declare v_at, v_part_id int;

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

            begin
                -- MySQL raises 3157 for JSON that is nested more than 100 deep.
                declare exit handler for 3157
                    call rowq.internal_refuse(
                        'messages must be JSON that is nested less than 100 deep'
                    );
                if coalesce(not json_valid(p_messages), true) then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif json_type(p_messages) <> 'ARRAY' or json_length(p_messages) > 10000 then
                    call rowq.internal_refuse(
                        'messages must be a JSON array of at most 10000 objects'
                    );
                elseif locate(x'ED', cast(p_messages as binary)) > 0 then
                    call rowq.internal_check_text('messages', p_messages);
                end if;
            end;

            begin
                -- No function returns a text that is longer than max_allowed_packet.
                declare exit handler for 1301
                    call rowq.internal_refuse(
                        'max_allowed_packet is too low for so many messages in one call'
                    );
                call rowq.internal_bound_queues(p_messages, v_queues);
                call rowq.internal_check_unbound(p_messages, v_queues);
                set v_at = 0, v_all_results = '', v_names = '';
                while v_at < json_length(v_queues) do
                    call rowq.internal_pick_messages(
                        p_messages, json_extract(v_queues, concat('$[', v_at, '][3]')),
                        v_picked, v_picked_places
                    );
                    set v_part_id = json_extract(v_queues, concat('$[', v_at, '][0]'));
                    call rowq.internal_store_published(
                        v_part_id, v_picked, v_picked_places, v_results
                    );
                    if v_results is null then
                        call rowq.internal_store_batch(
                            v_part_id, v_picked, v_picked_places, v_owns_transaction, v_results
                        );
                    end if;
                    set v_all_results = concat(v_all_results, if(v_at = 0, '', ','), v_results),
                        v_names = concat(
                            v_names,
                            rpad(
                                json_unquote(json_extract(v_queues, concat('$[', v_at, '][1]'))),
                                800, ' '
                            )
                        ),
                        v_at = v_at + 1;
                end while;
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    -- The names are looked up by their places, because a join with them would sort wide rows, which
    -- are too many for memory.
    select j.place as `position`,
           convert(
               unhex(rtrim(substring(v_names, j.queue_number * 800 - 799, 800))) using utf8mb4
           ) as queue_name,
           j.message_id, j.outcome
    from json_table(
        concat('[', v_all_results, ']'),
        '$[*]' columns (
            queue_number for ordinality,
            nested path '$[*]' columns (
                place int path '$[0]',
                message_id bigint path '$[1]',
                outcome varchar(20) path '$[2]'
            )
        )
    ) j
    order by j.queue_number, j.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/dequeue_fast.sql]
drop procedure if exists rowq.dequeue_fast;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.dequeue_fast(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int
)
sql security definer
modifies sql data
comment 'Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.'
begin
-- routine   dequeue_fast
-- version   1
-- purpose   Lease up to batch_size ready messages to one new claim, passing over rows that another session holds.
-- promise   P02 P03 P05 P06 P07 P13 P18 P28 P29
-- locks     ready rows, passing over locked ones; the new claim row; seldom a row of lane, tried;
--           where the queue has limits, its gate, tried for a tenth of a second and held until the
--           transaction ends
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ713
-- differs   the batch is held in the claim row, as a range of ids or as a JSON array
    declare v_owns_transaction, v_is_keyed, v_some_keyed boolean;
    declare v_tries_left int default 1;
    declare v_part_id, v_open_lanes, v_attempt, v_some_attempt int;
    declare v_lane smallint;
    declare v_floor, v_head, v_seq, v_message_id, v_first_id, v_last_id, v_claim_id bigint;
    declare v_leased_at, v_lease_until datetime(6);
    declare v_messages, v_none longtext;
    declare v_is_shown boolean default true;
    set p_batch_size = coalesce(p_batch_size, 1);

    -- Most calls go this short way: a transaction of their own, good arguments, one open lane, no
    -- limits. The time of a call is the number of its kinds of statement, so it has few, all of
    -- them here. For everything else, every error included, it changes nothing, and
    -- internal_dequeue does it all.
    short_way: begin
        declare v_is_end boolean default false;
        declare each_ready cursor for
            select r.seq, r.message_id, r.attempt + 1, r.is_keyed
            from rowq.ready r force index (primary)
            where r.part_id = v_part_id
              and r.lane = v_lane
              and r.seq >= v_head
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit p_batch_size
            for update skip locked;
        declare continue handler for not found set v_is_end = true;
        -- Do not wait for the same lock twice (1205), and do not go on where the call was killed
        -- (1317) or ran out of its time (1969, 3024).
        declare exit handler for 1205, 1317, 1969, 3024
        begin
            call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
            resignal;
        end;
        declare exit handler for sqlexception
        begin
            if v_owns_transaction then
                rollback and no chain no release;
            end if;
            set v_claim_id = null, v_messages = null, v_first_id = null;
        end;

        if p_batch_size not between 1 and 1000
           or p_lease_seconds not between 1 and 86400
           or char_length(p_worker_name) > 200
           or locate(x'ED', cast(p_worker_name as binary)) > 0 then
            leave short_way;
        end if;
        call rowq.internal_begin_work(v_owns_transaction);
        if not v_owns_transaction then
            leave short_way;
        end if;

        -- Lanes below 0 are open while messages are hidden in closed ones.
        select count(*), max(l.part_id), max(l.lane), max(l.floor), max(utc_timestamp(6)),
               max(utc_timestamp(6) + interval coalesce(p_lease_seconds, q.lease_seconds) second)
        into v_open_lanes, v_part_id, v_lane, v_floor, v_leased_at, v_lease_until
        from rowq.queue q
        straight_join rowq.lane l force index (primary) on l.part_id = q.part_id
        where q.queue_name = cast(p_queue_name as binary)
          and q.paused_at is null
          and q.max_leased + q.rate_limit = 0
          and l.is_open;
        if v_open_lanes <> 1 then
            commit and no chain no release;
            leave short_way;
        end if;

        -- Look without locks first, so that an empty lane costs no write and its fence rows are not
        -- locked.
        select r.seq, r.attempt into v_head, v_attempt
        from rowq.ready r force index (primary)
        where r.part_id = v_part_id
          and r.lane = v_lane
          and r.seq >= v_floor
          and r.seq < 9223372036854775806
        order by r.part_id, r.lane, r.seq, r.message_id
        limit 1;

        if v_head is not null and p_batch_size = 1 then
            select r.seq, r.message_id, r.message_id, r.attempt + 1, r.is_keyed
            into v_seq, v_first_id, v_last_id, v_attempt, v_is_keyed
            from rowq.ready r force index (primary)
            where r.part_id = v_part_id
              and r.lane = v_lane
              and r.seq >= v_head
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit 1
            for update skip locked;
            delete from rowq.ready
            where part_id = v_part_id
              and lane = v_lane
              and seq = v_seq
              and message_id = v_first_id;
        elseif v_head is not null then
            open each_ready;
            set v_is_end = false;
            fetch each_ready into v_seq, v_message_id, v_some_attempt, v_some_keyed;
            set v_attempt = v_some_attempt, v_is_keyed = false;
            while not v_is_end do
                delete from rowq.ready
                where part_id = v_part_id
                  and lane = v_lane
                  and seq = v_seq
                  and message_id = v_message_id;
                if v_messages is null and v_message_id = v_last_id + 1
                   and v_some_attempt = v_attempt then
                    set v_last_id = v_message_id;
                elseif v_first_id is null then
                    set v_first_id = v_message_id, v_last_id = v_message_id;
                else
                    -- The ids do not follow each other, or not all attempts are the same: make a
                    -- list of the range so far, and go on with that.
                    if v_messages is null then
                        call rowq.internal_expand_range(
                            v_first_id, v_last_id, v_lane, v_attempt, v_messages
                        );
                        set v_messages = left(v_messages, char_length(v_messages) - 1);
                    end if;
                    set v_messages = concat(
                        v_messages, ',[', v_message_id, ',', v_lane, ',', v_some_attempt, ']'
                    );
                end if;
                if v_some_keyed then
                    set v_is_keyed = true;
                end if;
                fetch each_ready into v_seq, v_message_id, v_some_attempt, v_some_keyed;
            end while;
            close each_ready;
            set v_messages = concat(v_messages, ']');
        end if;

        if v_first_id is not null then
            set v_claim_id = uuid_short() & 9007199254740991;
            insert into rowq.claim (
                part_id, claim_id, leased_at, lease_until, worker_name, is_keyed, lane, attempt,
                first_id, last_id, messages
            )
            values (
                v_part_id, v_claim_id, v_leased_at, v_lease_until, p_worker_name, v_is_keyed,
                v_lane, v_attempt, v_first_id, v_last_id, v_messages
            );
            -- Moving the floor costs a write, so only one call in twelve does it, and one in 125 of
            -- those that take one message. The head was there when this call began, taken by
            -- others perhaps and not committed, so nothing below it can come back.
            if rand() < 0.008 * least(p_batch_size, 10) then
                set v_head = least(
                    v_head, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 500000
                );
                if v_head > v_floor then
                    call rowq.internal_move_floor(v_part_id, v_lane, v_floor, v_head);
                end if;
            end if;
        end if;
        commit and no chain no release;
    end;

    if v_claim_id is null then
        call rowq.internal_dequeue(
            p_queue_name, p_batch_size, p_worker_name, p_lease_seconds, false,
            v_claim_id, v_lease_until, v_messages, v_none
        );
    end if;

    if v_messages is not null and not v_owns_transaction then
        select count(*) = json_length(v_messages) into v_is_shown
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id;
    end if;

    if v_messages is null then
        select v_claim_id as claim_id, m.message_id, v_attempt as attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from rowq.message m force index (primary)
        where m.message_id between v_first_id and v_last_id
        order by m.message_id;
    elseif v_is_shown then
        select v_claim_id as claim_id, m.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        order by j.place;
    else
        -- Read with a lock, because the old snapshot of an open transaction does not show newer
        -- messages. Nobody else reads so, because a producer that names one of them as a
        -- predecessor holds it.
        select v_claim_id as claim_id, m.message_id, j.attempt,
               m.message_type, m.headers, m.body, m.body_binary, m.enqueued_at,
               v_lease_until as lease_until, m.last_error
        from json_table(
            v_messages,
            '$[*]' columns (
                place for ordinality,
                message_id bigint path '$[0]',
                attempt int path '$[2]'
            )
        ) j
        straight_join rowq.message m force index (primary) on m.message_id = j.message_id
        order by j.place
        /*!80000 for share of m */ /*M!100600 lock in share mode */;
    end if;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/dequeue_wait.sql]
drop procedure if exists rowq.dequeue_wait;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.dequeue_wait(
    p_queue_name longtext,
    p_batch_size int,
    p_worker_name longtext,
    p_lease_seconds int,
    p_wait_seconds double
)
sql security definer
modifies sql data
comment 'Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.'
begin
-- routine   dequeue_wait
-- version   1
-- purpose   Do what dequeue_fast does, but wait until something is ready or the time is up; return fewer messages where they are long.
-- promise   P03 P17
-- locks     as dequeue_fast; a row of lane while it sleeps, passed over when locked
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   rows come as one JSON array, in a result set of one column
    declare v_claim_id bigint;
    declare v_lease_until, v_until datetime(6);
    declare v_messages, v_json longtext;
    declare v_part_id int;
    declare v_wait_seconds double default coalesce(p_wait_seconds, 20);
    declare v_pause double default 0.02;
    -- Where a transaction is open, "set transaction" fails with 1568.
    declare exit handler for 1568
    begin
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: dequeue_wait commits while it waits';
    end;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_check_range('wait_seconds', v_wait_seconds, 0, 3600);
    if @@autocommit = 0 then
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: dequeue_wait needs autocommit';
    end if;
    set transaction isolation level read committed;

    looks: loop
        call rowq.internal_dequeue(
            p_queue_name, coalesce(p_batch_size, 1), p_worker_name, p_lease_seconds, true,
            v_claim_id, v_lease_until, v_messages, v_json
        );
        if v_until is null then
            call rowq.internal_require_queue(p_queue_name, v_part_id);
            -- Read the clock after the first look, which puts the clock right if the caller has set
            -- it.
            set v_until = utc_timestamp(6)
                + interval round(v_wait_seconds * 1000000) microsecond;
        end if;
        if v_claim_id is not null and v_json is null then
            -- All messages of this claim are dead now, because no answer could hold them: look
            -- again.
            iterate looks;
        end if;
        if v_json is not null or utc_timestamp(6) >= v_until then
            leave looks;
        end if;
        call rowq.internal_wait(v_part_id, v_until, v_pause);
    end loop;

    select v_json as messages;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/peek.sql]
drop procedure if exists rowq.peek;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.peek(p_queue_name longtext, p_max_messages int)
sql security definer
modifies sql data
comment 'Show the next ready messages without leasing them.'
begin
-- routine   peek
-- version   1
-- purpose   Show the next ready messages without leasing them.
-- promise   P05
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_part_id int;
    declare v_left int default coalesce(p_max_messages, 1);
    declare v_lane smallint default -32768;
    declare v_is_hidden boolean default false;
    declare v_next smallint;
    declare v_floor bigint;
    declare v_some, v_messages longtext;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_left, 1, 1000);
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    lanes: while v_left > 0 do
        set v_next = null;
        select l.lane, l.floor into v_next, v_floor
        from rowq.lane l force index (primary)
        where l.part_id = v_part_id
          and l.lane > v_lane
          and (l.is_open or v_is_hidden)
        order by l.part_id, l.lane
        limit 1;
        if v_next is null then
            leave lanes;
        end if;
        if v_next < 0 then
            -- Look into closed lanes too: there are messages, but an open transaction keeps others
            -- from opening the lanes.
            set v_is_hidden = true, v_lane = -1;
            iterate lanes;
        end if;
        set v_lane = v_next;

        select json_arrayagg(json_array(h.message_id, h.lane, h.attempt)) into v_some
        from (
            select r.lane, r.message_id, r.attempt
            from rowq.ready r force index (primary)
            where r.part_id = v_part_id
              and r.lane = v_lane
              and r.seq >= v_floor
              and r.seq < 9223372036854775806
            order by r.part_id, r.lane, r.seq, r.message_id
            limit v_left
        ) h;
        if v_some is not null then
            set v_left = v_left - json_length(v_some);
            set v_messages = if(
                v_messages is null, v_some, json_merge_preserve(v_messages, v_some)
            );
        end if;
    end while;

    select m.message_id, j.lane div 2 as priority, j.attempt, m.message_type, m.headers, m.body,
           m.body_binary, m.enqueued_at, m.last_error
    from json_table(
        v_messages,
        '$[*]' columns (
            place for ordinality,
            message_id bigint path '$[0]',
            lane int path '$[1]',
            attempt int path '$[2]'
        )
    ) j
    straight_join rowq.message m force index (primary) on m.message_id = j.message_id
    order by j.place;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/complete.sql]
drop procedure if exists rowq.complete;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.complete(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_results longtext
)
sql security definer
modifies sql data
comment 'Finish messages: they are gone, or in the archive, and never delivered again.'
begin
-- routine   complete
-- version   1
-- purpose   Finish messages: they are gone, or in the archive, and never delivered again.
-- promise   P04 P08 P21 P22 P23 P24 P26 P32 P37
-- locks     with an archive the part, shared; the claim row; then message and dedup rows, waiting
--           for who has just named one of the messages as a predecessor; rows of groups and of
--           messages that wait, tried only; new result and history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_archive_days, v_history_days int;
    declare v_result_seconds double;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_first_id, v_last_id bigint;
    declare v_is_keyed boolean;
    declare v_is_done boolean default false;
    declare v_messages, v_cancel_ids longtext;

    -- Most calls go this short way: a transaction of their own, the whole claim, no key, archive,
    -- results or history. For everything else, every error included, it changes nothing, and the
    -- loop below does it all.
    short_way: begin
        -- Do not wait for the same lock twice (1205), and do not go on where the call was killed
        -- (1317) or ran out of its time (1969, 3024).
        declare exit handler for 1205, 1317, 1969, 3024
        begin
            call rowq.internal_roll_back(v_owns_transaction, null, v_tries_left);
            resignal;
        end;
        declare exit handler for sqlexception
        begin
            if v_owns_transaction then
                rollback and no chain no release;
            end if;
            set v_is_done = false;
        end;

        if p_message_ids is not null or p_claim_id is null or p_results is not null then
            leave short_way;
        end if;
        call rowq.internal_begin_work(v_owns_transaction);
        if not v_owns_transaction then
            leave short_way;
        end if;

        select c.part_id, c.first_id, c.last_id, c.messages
        into v_part_id, v_first_id, v_last_id, v_messages
        from rowq.queue q
        straight_join rowq.claim c force index (primary)
            on c.part_id = q.part_id
           and c.claim_id = p_claim_id
        where q.queue_name = cast(p_queue_name as binary)
          and q.archive_days = 0
          and q.result_seconds = 0
          and q.history_days = 0
          and c.claim_id > 0
          and not c.is_keyed;
        if v_part_id is not null then
            -- The claim was read without a lock. Whoever deletes it as it was read has its
            -- messages.
            delete from rowq.claim
            where part_id = v_part_id
              and claim_id = p_claim_id
              and first_id <=> v_first_id
              and last_id <=> v_last_id
              and messages <=> v_messages;
            set v_is_done = row_count() > 0;
        end if;
        if v_is_done and v_messages is null then
            -- Find each message by its key. A delete by a range waits for whoever has locked the
            -- row behind its end, and reads the whole table where the server takes it for empty, as
            -- it does after a restart. An array of as many zeros counts to the end of the range.
            if v_first_id = v_last_id then
                delete from rowq.message
                where message_id = v_first_id
                  and has_successors is null;
            else
                delete m
                from json_table(
                    concat('[0', repeat(',0', v_last_id - v_first_id), ']'),
                    '$[*]' columns (place for ordinality)
                ) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = v_first_id + j.place - 1
                where m.has_successors is null;
            end if;
        elseif v_is_done then
            delete m
            from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
            straight_join rowq.message m force index (primary) on m.message_id = j.message_id
            where m.has_successors is null;
        end if;
        if v_is_done
           and row_count() < coalesce(json_length(v_messages), v_last_id - v_first_id + 1) then
            -- Others wait for the rest.
            if v_messages is null then
                call rowq.internal_expand_range(v_first_id, v_last_id, 0, 0, v_messages);
            end if;
            call rowq.internal_end_awaited(v_part_id, v_messages, true);
        end if;
        commit and no chain no release;
    end;

    attempt: while not v_is_done do
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

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;

            set v_part_id = null;
            select q.part_id, q.archive_days, q.result_seconds, q.history_days
            into v_part_id, v_archive_days, v_result_seconds, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if p_results is not null then
                call rowq.internal_check_results(
                    p_results, coalesce(json_length(p_message_ids), 1), v_result_seconds
                );
            end if;
            if v_archive_days > 0 then
                call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            end if;
            call rowq.internal_pop_claimed(
                v_part_id, p_claim_id, p_message_ids, v_owns_transaction, v_is_keyed, v_messages,
                v_cancel_ids, v_worker_name, v_leased_at
            );
            if p_results is not null and p_message_ids is null and json_length(v_messages) > 1 then
                call rowq.internal_refuse(
                    'results without message_ids are of a claim of one message'
                );
            end if;
            if v_messages is not null then
                call rowq.internal_finish(
                    v_part_id, v_archive_days, v_is_keyed, v_messages, null, null,
                    v_owns_transaction, 'completed'
                );
                if v_result_seconds > 0 then
                    call rowq.internal_push_result(
                        v_part_id, v_messages, 'completed', null, p_results,
                        coalesce(p_message_ids, json_extract(v_messages, '$[*][0]'))
                    );
                end if;
                if v_history_days > 0 then
                    call rowq.internal_push_history(
                        v_part_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'completed',
                        null, null, null
                    );
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            set v_is_done = true, v_first_id = null;
        end;
    end while;

    if v_messages is not null or p_message_ids is not null then
        call rowq.internal_outcomes(p_message_ids, v_messages, 'completed', null);
    elseif v_first_id = v_last_id then
        select v_first_id as message_id, 'completed' as outcome;
    else
        -- An array of as many zeros counts to the end of the range.
        select v_first_id + j.place - 1 as message_id, 'completed' as outcome
        from json_table(
            concat('[0', repeat(',0', v_last_id - v_first_id), ']'),
            '$[*]' columns (place for ordinality)
        ) j;
    end if;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/retry_later.sql]
drop procedure if exists rowq.retry_later;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.retry_later(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_delay_seconds double,
    p_error longtext
)
sql security definer
modifies sql data
comment 'Give messages back for another attempt after a delay, the queue''s backoff unless delay_seconds is given; without an attempt left they are dead.'
begin
-- routine   retry_later
-- version   1
-- purpose   Give messages back for another attempt after a delay, the queue's backoff unless delay_seconds is given; without an attempt left they are dead.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then message, delayed, ready or dead rows, and for
--           cancelled messages as complete; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_is_keyed boolean;
    declare v_part_id, v_max_attempts, v_history_days int;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_messages, v_rest, v_cancel_ids, v_alive, v_dead, v_delayed longtext;

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

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;
            if locate(x'ED', cast(p_error as binary)) > 0 then
                call rowq.internal_check_text('error', p_error);
            end if;
            call rowq.internal_check_range('delay_seconds', p_delay_seconds, 0, 315360000);

            set v_part_id = null;
            select q.part_id, q.max_attempts, q.history_days
            into v_part_id, v_max_attempts, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_pop_claimed(
                v_part_id, p_claim_id, p_message_ids, v_owns_transaction, v_is_keyed, v_messages,
                v_cancel_ids, v_worker_name, v_leased_at
            );
            set v_rest = v_messages;
            if v_cancel_ids is not null then
                call rowq.internal_end_cancelled(
                    v_part_id, v_cancel_ids, v_owns_transaction, v_rest
                );
            end if;

            set v_delayed = null, v_dead = null;
            if v_rest is not null then
                call rowq.internal_split_by_attempts(
                    v_rest, v_max_attempts, v_owns_transaction, v_alive, v_dead
                );
                if v_alive is not null then
                    call rowq.internal_back_off(v_part_id, v_alive, p_delay_seconds, v_delayed);
                    call rowq.internal_push_delayed(v_part_id, v_delayed, p_error);
                end if;
                if v_dead is not null then
                    call rowq.internal_push_dead(
                        v_part_id, v_dead, p_error, v_owns_transaction
                    );
                end if;
            end if;
            if v_history_days > 0 and v_messages is not null then
                call rowq.internal_push_history(
                    v_part_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'retrying',
                    p_error, v_dead, v_cancel_ids
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_message_ids is null then
        select json_arrayagg(j.message_id) into p_message_ids
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j;
    end if;
    select a.message_id,
           case
               when r.message_id is not null then 'retrying'
               when d.message_id is not null then 'dead'
               when c.message_id is not null then 'cancelled'
               else 'stale'
           end as outcome,
           timestamp'1970-01-01 00:00:00' + interval r.due_at microsecond as due_at
    from json_table(
        p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id, j.due_at
        from json_table(
            v_delayed, '$[*]' columns (message_id bigint path '$[0]', due_at bigint path '$[3]')
        ) j
    ) r on r.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
    ) d on d.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_cancel_ids, '$[*]' columns (message_id bigint path '$')) j
    ) c on c.message_id = a.message_id
    order by a.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/fail_now.sql]
drop procedure if exists rowq.fail_now;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.fail_now(
    p_queue_name longtext,
    p_claim_id bigint,
    p_message_ids longtext,
    p_error longtext
)
sql security definer
modifies sql data
comment 'Declare messages dead without another attempt.'
begin
-- routine   fail_now
-- version   1
-- purpose   Declare messages dead without another attempt.
-- promise   P08 P10 P34 P37
-- locks     the part, shared; the claim row; then message, dead and dedup rows, and for cancelled
--           messages as complete; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_is_keyed boolean;
    declare v_part_id, v_history_days int;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_messages, v_rest, v_cancel_ids longtext;

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

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;
            if locate(x'ED', cast(p_error as binary)) > 0 then
                call rowq.internal_check_text('error', p_error);
            end if;

            set v_part_id = null;
            select q.part_id, q.history_days into v_part_id, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_pop_claimed(
                v_part_id, p_claim_id, p_message_ids, v_owns_transaction, v_is_keyed, v_messages,
                v_cancel_ids, v_worker_name, v_leased_at
            );
            set v_rest = v_messages;
            if v_cancel_ids is not null then
                call rowq.internal_end_cancelled(
                    v_part_id, v_cancel_ids, v_owns_transaction, v_rest
                );
            end if;
            if v_rest is not null then
                call rowq.internal_push_dead(
                    v_part_id, v_rest, p_error, v_owns_transaction
                );
            end if;
            if v_history_days > 0 and v_messages is not null then
                call rowq.internal_push_history(
                    v_part_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'dead',
                    p_error, null, v_cancel_ids
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    call rowq.internal_outcomes(p_message_ids, v_messages, 'dead', v_cancel_ids);

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/release.sql]
drop procedure if exists rowq.release;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.release(p_queue_name longtext, p_claim_id bigint, p_message_ids longtext)
sql security definer
modifies sql data
comment 'Give messages back to the front of their priority without spending the attempt.'
begin
-- routine   release
-- version   1
-- purpose   Give messages back to the front of their priority without spending the attempt.
-- promise   P08 P34 P37
-- locks     the part, shared; the claim row; then new ready rows, and for cancelled messages as
--           complete; new history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_is_keyed boolean;
    declare v_part_id, v_history_days int;
    declare v_worker_name varchar(200);
    declare v_leased_at datetime(6);
    declare v_messages, v_rest, v_cancel_ids, v_front longtext;

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

            call rowq.internal_check_ids(p_message_ids);
            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;

            set v_part_id = null;
            select q.part_id, q.history_days into v_part_id, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_pop_claimed(
                v_part_id, p_claim_id, p_message_ids, v_owns_transaction, v_is_keyed, v_messages,
                v_cancel_ids, v_worker_name, v_leased_at
            );
            set v_rest = v_messages;
            if v_cancel_ids is not null then
                call rowq.internal_end_cancelled(
                    v_part_id, v_cancel_ids, v_owns_transaction, v_rest
                );
            end if;
            if v_rest is not null then
                call rowq.internal_as_front(v_rest, 1, v_front);
                call rowq.internal_push_ready(v_part_id, v_front);
            end if;
            if v_history_days > 0 and v_messages is not null then
                call rowq.internal_push_history(
                    v_part_id, p_claim_id, v_worker_name, v_leased_at, v_messages, 'released',
                    null, null, v_cancel_ids
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    call rowq.internal_outcomes(p_message_ids, v_messages, 'released', v_cancel_ids);

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/extend_lease.sql]
drop procedure if exists rowq.extend_lease;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.extend_lease(
    p_queue_name longtext,
    p_claim_id bigint,
    p_lease_seconds int,
    p_progress longtext
)
sql security definer
modifies sql data
comment 'Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.'
begin
-- routine   extend_lease
-- version   1
-- purpose   Heartbeat: hold all messages of a claim for lease_seconds from now; a lease is never shortened.
-- promise   P08 P34
-- locks     the claim row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711 RQ721
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_lease_seconds int;
    declare v_claim_id bigint;
    declare v_lease_until datetime(6);
    declare v_cancel_ids longtext;

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

            if p_claim_id is null then
                call rowq.internal_refuse('claim_id is missing');
            end if;
            call rowq.internal_check_range('lease_seconds', p_lease_seconds, 1, 86400);
            if locate(x'ED', cast(p_progress as binary)) > 0 then
                call rowq.internal_check_text('progress', p_progress);
            end if;

            set v_part_id = null, v_lease_until = null, v_claim_id = p_claim_id;
            select q.part_id, coalesce(p_lease_seconds, q.lease_seconds)
            into v_part_id, v_lease_seconds
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;

            if not v_owns_transaction then
                call rowq.internal_bound_gap(v_part_id, v_claim_id);
            end if;
            select c.lease_until, c.cancel_ids into v_lease_until, v_cancel_ids
            from rowq.claim c force index (primary)
            where c.part_id = v_part_id
              and c.claim_id = v_claim_id
              and c.claim_id > 0
            for update;
            if v_lease_until is null then
                call rowq.internal_refuse_claim(p_claim_id);
            end if;
            set v_lease_until = greatest(
                v_lease_until, utc_timestamp(6) + interval v_lease_seconds second
            );
            update rowq.claim c force index (primary)
            set c.lease_until = v_lease_until,
                c.progress = coalesce(left(p_progress, 2000), c.progress)
            where c.part_id = v_part_id
              and c.claim_id = p_claim_id;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_claim_id as claim_id, v_lease_until as lease_until, v_cancel_ids as cancel_ids;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/cancel.sql]
drop procedure if exists rowq.cancel;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.cancel(
    p_queue_name longtext,
    p_message_ids longtext,
    p_include_leased boolean
)
sql security definer
modifies sql data
comment 'Withdraw messages that no worker holds, dead ones too.'
begin
-- routine   cancel
-- version   1
-- purpose   Withdraw messages that no worker holds, dead ones too.
-- promise   P15 P34
-- locks     the part, shared; claim rows, if include_leased, then blocked, delayed, dead, grouped
--           and ready rows; locked ones are passed over; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   a message that was retried or delayed is looked for among all ready ones of the queue
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_noted, v_rest, v_messages, v_finished, v_unknown longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- The wait for a producer ends with the session's innodb_lock_wait_timeout. A
                    -- caller whose whole transaction ends with it gets the engine's own error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction holds a message; try again';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            -- A session that is not pinned may cut what json_arrayagg returns at a megabyte: let
            -- the lists of many messages have room.
            /*M!100600
            if json_length(p_message_ids) > 300 then
                call rowq.internal_pin_session(@@timestamp);
            end if;
            */
            call rowq.internal_begin_work(v_owns_transaction);

            if p_message_ids is null then
                call rowq.internal_refuse('message_ids is missing');
            end if;
            call rowq.internal_check_ids(p_message_ids);

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            set v_noted = null, v_rest = p_message_ids;
            if p_include_leased then
                -- Look into the claims first: what is noted there is not looked for among the
                -- ready ones.
                call rowq.internal_note_cancels(v_part_id, p_message_ids, v_noted);
            end if;
            if v_noted is not null then
                select json_arrayagg(j.message_id) into v_rest
                from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
                left join (
                    select distinct a.message_id
                    from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) a
                ) n on n.message_id = j.message_id
                where n.message_id is null;
            end if;
            call rowq.internal_withdraw(v_part_id, v_rest, v_owns_transaction, v_messages);

            -- A message without a body is unknown, and so is one that is finished and not yet
            -- archived. Every other one that is left is in a worker's hands.
            call rowq.internal_finished_of(v_part_id, p_message_ids, v_finished);
            select json_arrayagg(j.message_id) into v_unknown
            from json_table(p_message_ids, '$[*]' columns (message_id bigint path '$')) j
            left join rowq.message m force index (primary)
                on m.message_id = j.message_id
               and m.part_id = v_part_id
            left join (
                select distinct x.message_id
                from json_table(v_finished, '$[*]' columns (message_id bigint path '$')) x
            ) n on n.message_id = m.message_id
            where m.message_id is null
               or n.message_id is not null;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select a.message_id,
           case
               when c.message_id is not null then 'cancelled'
               when n.message_id is not null then 'requested'
               when u.message_id is not null then 'not_found'
               else 'leased'
           end as outcome
    from json_table(
        p_message_ids, '$[*]' columns (place for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id
        from json_table(v_messages, '$[*]' columns (message_id bigint path '$[0]')) j
    ) c on c.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_noted, '$[*]' columns (message_id bigint path '$')) j
    ) n on n.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_unknown, '$[*]' columns (message_id bigint path '$')) j
    ) u on u.message_id = a.message_id
    order by a.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/cancel_many.sql]
drop procedure if exists rowq.cancel_many;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.cancel_many(
    p_queue_name longtext,
    p_message_type longtext,
    p_group_key longtext,
    p_header_name longtext,
    p_header_value longtext,
    p_enqueued_before datetime(6),
    p_after_message_id bigint,
    p_max_messages int
)
sql security definer
modifies sql data
comment 'Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.'
begin
-- routine   cancel_many
-- version   1
-- purpose   Look at up to max_messages messages, in the order of their ids, and withdraw those that match every filter given and that no worker holds, dead ones too. At least one filter is required.
-- promise   P15
-- locks     as cancel
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   it looks at other queues' messages, too, because the key of the table is the id alone;
--           a message that was retried or delayed is looked for among all ready ones of the queue
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_looked_at int;
    declare v_limit int default coalesce(p_max_messages, 1000);
    declare v_last_id bigint;
    declare v_path varchar(300) default concat('$."', left(p_header_name, 200), '"');
    declare v_type, v_key, v_value longblob;
    declare v_ids, v_claim_ids, v_held, v_finished, v_messages longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- The wait for a producer ends with the session's innodb_lock_wait_timeout. A
                    -- caller whose whole transaction ends with it gets the engine's own error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction holds a message; try again';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            -- A session that is not pinned may cut what json_arrayagg returns at a megabyte: let
            -- the lists of many messages have room.
            /*M!100600 call rowq.internal_pin_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
            if (p_header_name is null) <> (p_header_value is null) then
                call rowq.internal_refuse('header_name and header_value are given together');
            end if;
            if char_length(p_header_name) not between 1 and 200
               or p_header_name regexp '[^ -~]|["\\\\]|^-' then
                call rowq.internal_refuse(
                    'header_name must have 1 to 200 printable ASCII characters, no ", \\, leading -'
                );
            end if;
            if coalesce(p_message_type, p_group_key, p_header_name, p_enqueued_before) is null then
                call rowq.internal_refuse(
                    'a filter is missing: a type, a group, a header with its value, or a moment'
                );
            end if;
            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            -- Compare bytes, because texts that differ in trailing blanks are equal.
            set v_type = cast(p_message_type as binary), v_key = cast(p_group_key as binary),
                v_value = cast(p_header_value as binary), v_messages = null;

            select json_arrayagg(if(h.is_wanted, h.message_id, 0)), count(*), max(h.message_id)
            into v_ids, v_looked_at, v_last_id
            from (
                select m.message_id,
                       m.part_id = v_part_id
                       and (v_type is null or cast(m.message_type as binary) = v_type)
                       and (v_key is null or m.group_key = v_key)
                       and (p_enqueued_before is null or m.enqueued_at < p_enqueued_before)
                       and (
                           v_value is null
                           or cast(json_unquote(json_extract(m.headers, v_path)) as binary)
                              = v_value
                           and json_type(json_extract(m.headers, v_path))
                               in ('STRING', 'INTEGER', 'UNSIGNED INTEGER', 'BOOLEAN')
                       ) as is_wanted
                from rowq.message m force index (primary)
                where m.message_id > coalesce(p_after_message_id, 0)
                order by m.message_id
                limit v_limit
            ) h;
            call rowq.internal_claims_of(v_part_id, v_ids, v_claim_ids, v_held);
            call rowq.internal_finished_of(v_part_id, v_ids, v_finished);

            -- Leave out what a worker holds, and what is finished and not yet archived, because it
            -- would be looked for among all ready messages.
            select json_arrayagg(j.message_id) into v_ids
            from json_table(v_ids, '$[*]' columns (message_id bigint path '$')) j
            left join (
                select distinct a.message_id
                from json_table(
                    json_merge_preserve(coalesce(v_held, '[]'), coalesce(v_finished, '[]')),
                    '$[*]' columns (message_id bigint path '$')
                ) a
            ) n on n.message_id = j.message_id
            where j.message_id > 0
              and n.message_id is null;
            if v_ids is not null then
                call rowq.internal_withdraw(v_part_id, v_ids, v_owns_transaction, v_messages);
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select coalesce(json_length(v_messages), 0) as cancelled,
           if(v_looked_at = v_limit, v_last_id, null) as after_message_id;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/reset.sql]
drop procedure if exists rowq.reset;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.reset(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6)
)
sql security definer
modifies sql data
comment 'Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.'
begin
-- routine   reset
-- version   1
-- purpose   Make dead messages ready again, at the tail of their priority, with fresh attempts; null takes the oldest max_messages.
-- promise   P10 P12 P32
-- locks     the part, shared; dead rows, passing over locked ones; dedup rows; message rows,
--           tried only; result rows; new ready rows; groups as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_seen, v_dead, v_taken, v_reset, v_ended, v_waiting, v_ready longtext;

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
            -- A session that is not pinned may cut what json_arrayagg returns at a megabyte, and
            -- the keys of ten thousand messages are longer.
            /*M!100600 call rowq.internal_pin_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_lock_dead(
                p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
                v_part_id, v_dead
            );
            set v_taken = null, v_reset = null;

            if v_dead is not null then
                -- A dedup key has one owner at a time, so a dead message whose key is taken stays
                -- dead.
                call rowq.internal_retake_dedup_keys(v_part_id, v_dead);
                select json_arrayagg(m.message_id) into v_taken
                from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.message m force index (primary)
                    on m.message_id = j.message_id
                left join rowq.dedup k force index (primary)
                    on k.part_id = v_part_id
                   and k.dedup_key = m.dedup_key
                where m.dedup_key is not null
                  and coalesce(k.message_id, 0) <> m.message_id;

                select json_arrayagg(json_array(
                           j.message_id, j.lane div 2 * 2 + 1, 0, coalesce(j.holds_group, 0)
                       ))
                into v_reset
                from json_table(
                    v_dead,
                    '$[*]' columns (
                        message_id bigint path '$[0]',
                        lane smallint path '$[1]',
                        holds_group tinyint path '$[3]'
                    )
                ) j
                left join (
                    select distinct a.message_id
                    from json_table(v_taken, '$[*]' columns (message_id bigint path '$')) a
                ) t on t.message_id = j.message_id
                where t.message_id is null;
            end if;
            if v_reset is not null then
                -- The error goes with the message, but not where a producer holds its row, because
                -- reset waits for nobody. Without a limit MySQL would merge what is selected into
                -- the update, and wait.
                update (
                    select x.message_id, d.last_error
                    from json_table(
                        v_reset, '$[*]' columns (message_id bigint path '$[0]')
                    ) j
                    straight_join rowq.dead d force index (primary)
                        on d.part_id = v_part_id
                       and d.message_id = j.message_id
                    straight_join rowq.message x force index (primary)
                        on x.message_id = j.message_id
                    limit 1000000
                    for update /*!80000 of d, x */ skip locked
                ) h
                straight_join rowq.message m force index (primary)
                    on m.message_id = h.message_id
                set m.last_error = h.last_error;
                delete d
                from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = v_part_id
                   and d.message_id = j.message_id;
                -- A message that is alive again has not ended.
                select json_arrayagg(r.message_id) into v_ended
                from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.result r force index (primary)
                    on r.part_id = v_part_id
                   and r.message_id = j.message_id;
                if v_ended is not null then
                    delete r
                    from json_table(v_ended, '$[*]' columns (message_id bigint path '$')) j
                    straight_join rowq.result r force index (primary)
                        on r.part_id = v_part_id
                       and r.message_id = j.message_id;
                end if;
                -- One that has kept the token of its group goes on as if it had none.
                call rowq.internal_rejoin_groups(v_part_id, v_reset, v_waiting);
                set v_ready = v_reset;
                if v_waiting is not null then
                    select json_arrayagg(json_array(j.message_id, j.lane, 0)) into v_ready
                    from json_table(
                        v_reset,
                        '$[*]' columns (message_id bigint path '$[0]', lane smallint path '$[1]')
                    ) j
                    left join (
                        select distinct w.message_id
                        from json_table(v_waiting, '$[*]' columns (message_id bigint path '$')) w
                    ) h on h.message_id = j.message_id
                    where h.message_id is null;
                end if;
                if v_ready is not null then
                    call rowq.internal_push_ready(v_part_id, v_ready);
                end if;
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    if p_message_ids is null then
        select json_arrayagg(j.message_id) into v_seen
        from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j;
    else
        set v_seen = p_message_ids;
    end if;
    select a.message_id,
           case
               when r.message_id is not null then 'reset'
               when t.message_id is not null then 'duplicate'
               else 'not_found'
           end as outcome
    from json_table(
        v_seen, '$[*]' columns (place for ordinality, message_id bigint path '$')
    ) a
    left join (
        select distinct j.message_id
        from json_table(v_reset, '$[*]' columns (message_id bigint path '$[0]')) j
    ) r on r.message_id = a.message_id
    left join (
        select distinct j.message_id
        from json_table(v_taken, '$[*]' columns (message_id bigint path '$')) j
    ) t on t.message_id = a.message_id
    order by a.place;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/discard_dead.sql]
drop procedure if exists rowq.discard_dead;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.discard_dead(
    p_queue_name longtext,
    p_message_ids longtext,
    p_max_messages int,
    p_message_type longtext,
    p_died_before datetime(6)
)
sql security definer
modifies sql data
comment 'Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.'
begin
-- routine   discard_dead
-- version   1
-- purpose   Delete dead messages for good, the archive keeps none of them; null takes the oldest max_messages.
-- promise   P12 P22 P26
-- locks     the part, shared; dead rows, passing over locked ones; then as complete
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ705 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_dead, v_tokenless, v_ids longtext;

    attempt: loop
        begin
            declare v_errno int;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1 v_errno = mysql_errno;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_errno = 1205 and (v_owns_transaction or not @@innodb_rollback_on_timeout) then
                    -- The wait for a producer ends with the session's innodb_lock_wait_timeout. A
                    -- caller whose whole transaction ends with it gets the engine's own error.
                    signal sqlstate '45705' set message_text =
                        'RQ705 queue_busy: an open transaction holds a message; try again';
                end if;
                if v_tries_left = 0 then
                    resignal;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_lock_dead(
                p_queue_name, p_message_ids, p_max_messages, p_message_type, p_died_before,
                v_part_id, v_dead
            );
            if v_dead is not null then
                delete d
                from json_table(v_dead, '$[*]' columns (message_id bigint path '$[0]')) j
                straight_join rowq.dead d force index (primary)
                    on d.part_id = v_part_id
                   and d.message_id = j.message_id;
                select json_arrayagg(if(j.holds_group, null, j.message_id)),
                       json_arrayagg(j.message_id)
                into v_tokenless, v_ids
                from json_table(
                    v_dead,
                    '$[*]' columns (message_id bigint path '$[0]', holds_group tinyint path '$[3]')
                ) j;
                call rowq.internal_finish(
                    v_part_id, 0, true, v_dead, v_tokenless, v_ids, v_owns_transaction,
                    'cancelled'
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select coalesce(json_length(v_dead), 0) as removed;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/create_schedule.sql]
drop procedure if exists rowq.create_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.create_schedule(
    p_queue_name longtext,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_overlap boolean,
    p_starts_at datetime(6),
    p_ends_at datetime(6)
)
sql security definer
modifies sql data
comment 'Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.'
begin
-- routine   create_schedule
-- version   1
-- purpose   Let maintain enqueue a message at the times of a cron expression, or every so many seconds; an existing schedule of that name is left as it is.
-- promise   P15 P30 P31
-- locks     the part, shared; the new schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   a time zone other than UTC needs the server's tables of time zones, and has no tick
--           after 2037
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_outcome varchar(20);
    declare v_starts_at, v_next_run_at datetime(6);

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            set v_starts_at = coalesce(p_starts_at, utc_timestamp(6));
            call rowq.internal_check_schedule(
                v_part_id, p_schedule_name, p_cron, p_interval_seconds,
                coalesce(p_time_zone, 'UTC'), p_body, p_body_binary, p_message_type, p_headers,
                coalesce(p_priority, 5), p_max_attempts, p_group_key, coalesce(p_missed, 'once'),
                v_starts_at, p_ends_at, v_next_run_at
            );
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            set v_outcome = 'created';
            begin
                -- A schedule of that name is there. Read it with a lock, because an old snapshot
                -- may not show it.
                declare exit handler for 1062
                begin
                    set v_outcome = 'exists';
                    select s.next_run_at into v_next_run_at
                    from rowq.schedule s force index (primary)
                    where s.part_id = v_part_id
                      and s.schedule_name = cast(p_schedule_name as binary)
                    lock in share mode;
                end;
                insert into rowq.schedule (
                    part_id, schedule_name, cron, interval_seconds, time_zone, missed, overlap,
                    starts_at, ends_at, message_type, headers, priority, group_key, max_attempts,
                    body, body_binary, next_run_at
                )
                values (
                    v_part_id, cast(p_schedule_name as binary), p_cron, p_interval_seconds,
                    coalesce(p_time_zone, 'UTC'), coalesce(p_missed, 'once'),
                    coalesce(p_overlap, true), v_starts_at, p_ends_at, p_message_type, p_headers,
                    coalesce(p_priority, 5), p_group_key, p_max_attempts, p_body, p_body_binary,
                    v_next_run_at
                );
            end;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, v_outcome as outcome, v_next_run_at as next_run_at;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/alter_schedule.sql]
drop procedure if exists rowq.alter_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.alter_schedule(
    p_queue_name longtext,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_overlap boolean,
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_is_paused boolean
)
sql security definer
modifies sql data
comment 'Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.'
begin
-- routine   alter_schedule
-- version   1
-- purpose   Change a schedule, pause it or let it go on; null leaves a setting as it is. It counts anew from now: what it has missed is not made up for.
-- promise   P15 P31
-- locks     the part, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   time zones as in create_schedule
    declare v_owns_transaction, v_overlap, v_is_paused boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_priority, v_max_attempts int;
    declare v_cron, v_time_zone, v_body, v_message_type, v_headers, v_group_key, v_missed longtext;
    declare v_body_binary longblob;
    declare v_interval_seconds double;
    declare v_starts_at, v_ends_at, v_next_run_at datetime(6);

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_require_schedule(v_part_id, p_schedule_name);
            -- One kind of time, or of body, takes the place of the other. Read with a lock, because
            -- an old snapshot shows the row as it was.
            select if(coalesce(p_cron, p_interval_seconds) is null, s.cron, p_cron),
                   if(
                       coalesce(p_cron, p_interval_seconds) is null,
                       s.interval_seconds, p_interval_seconds
                   ),
                   if(coalesce(p_body, p_body_binary) is null, s.body, p_body),
                   if(coalesce(p_body, p_body_binary) is null, s.body_binary, p_body_binary),
                   coalesce(p_time_zone, s.time_zone), coalesce(p_message_type, s.message_type),
                   coalesce(p_headers, s.headers), coalesce(p_priority, s.priority),
                   coalesce(p_max_attempts, s.max_attempts),
                   coalesce(p_group_key, convert(s.group_key using utf8mb4)),
                   coalesce(p_missed, s.missed), coalesce(p_overlap, s.overlap),
                   coalesce(p_starts_at, s.starts_at), coalesce(p_ends_at, s.ends_at),
                   coalesce(p_is_paused, s.is_paused)
            into v_cron, v_interval_seconds, v_body, v_body_binary, v_time_zone, v_message_type,
                 v_headers, v_priority, v_max_attempts, v_group_key, v_missed, v_overlap,
                 v_starts_at, v_ends_at, v_is_paused
            from rowq.schedule s force index (primary)
            where s.part_id = v_part_id
              and s.schedule_name = cast(p_schedule_name as binary)
            for update;
            -- What cannot run any more can still be paused.
            if not coalesce(p_is_paused, false) or coalesce(
                p_cron, p_interval_seconds, p_time_zone, p_body, p_body_binary, p_message_type,
                p_headers, p_priority, p_max_attempts, p_group_key, p_missed, p_overlap,
                p_starts_at, p_ends_at
            ) is not null then
                call rowq.internal_check_schedule(
                    v_part_id, p_schedule_name, v_cron, v_interval_seconds, v_time_zone, v_body,
                    v_body_binary, v_message_type, v_headers, v_priority, v_max_attempts,
                    v_group_key, v_missed, v_starts_at, v_ends_at, v_next_run_at
                );
            end if;
            if v_is_paused then
                set v_next_run_at = null;
            end if;

            update rowq.schedule s
            set s.cron             = v_cron,
                s.interval_seconds = v_interval_seconds,
                s.time_zone        = v_time_zone,
                s.missed           = v_missed,
                s.overlap          = v_overlap,
                s.starts_at        = v_starts_at,
                s.ends_at          = v_ends_at,
                s.message_type     = v_message_type,
                s.headers          = v_headers,
                s.priority         = v_priority,
                s.group_key        = v_group_key,
                s.max_attempts     = v_max_attempts,
                s.body             = v_body,
                s.body_binary      = v_body_binary,
                s.is_paused        = v_is_paused,
                s.next_run_at      = v_next_run_at,
                s.last_error       = null
            where s.part_id = v_part_id
              and s.schedule_name = cast(p_schedule_name as binary);

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, 'altered' as outcome, v_next_run_at as next_run_at;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/drop_schedule.sql]
drop procedure if exists rowq.drop_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.drop_schedule(p_queue_name longtext, p_schedule_name longtext)
sql security definer
modifies sql data
comment 'Remove a schedule; the messages that it made stay.'
begin
-- routine   drop_schedule
-- version   1
-- purpose   Remove a schedule; the messages that it made stay.
-- promise   P15
-- locks     the part, shared; the schedule row
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_require_schedule(v_part_id, p_schedule_name);
            delete from rowq.schedule
            where part_id = v_part_id
              and schedule_name = cast(p_schedule_name as binary);

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select p_schedule_name as schedule_name, 'dropped' as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/run_schedule.sql]
drop procedure if exists rowq.run_schedule;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.run_schedule(p_queue_name longtext, p_schedule_name longtext)
sql security definer
modifies sql data
comment 'Enqueue the message of a schedule now, paused or not; its next tick stays as it is.'
begin
-- routine   run_schedule
-- version   1
-- purpose   Enqueue the message of a schedule now, paused or not; its next tick stays as it is.
-- promise   P15
-- locks     the part, shared; the schedule row; as enqueue
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ702 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id int;
    declare v_now datetime(6);
    declare v_message_id bigint;
    declare v_outcome varchar(20);

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

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_require_schedule(v_part_id, p_schedule_name);
            set v_now = utc_timestamp(6);
            call rowq.internal_send_tick(
                v_part_id, cast(p_schedule_name as binary), v_now, v_owns_transaction,
                v_message_id, v_outcome
            );
            if v_outcome = 'enqueued' then
                update rowq.schedule s
                set s.last_run_at     = v_now,
                    s.last_message_id = v_message_id
                where s.part_id = v_part_id
                  and s.schedule_name = cast(p_schedule_name as binary);
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_message_id as message_id, v_outcome as outcome;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/list_schedules.sql]
drop procedure if exists rowq.list_schedules;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.list_schedules(p_queue_name longtext)
sql security definer
modifies sql data
comment 'The schedules of one queue, or of all, without their bodies and headers.'
begin
-- routine   list_schedules
-- version   1
-- purpose   The schedules of one queue, or of all, without their bodies and headers.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    declare v_part_id int;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_part_id);
    end if;

    select convert(q.queue_name using utf8mb4) as queue_name,
           convert(s.schedule_name using utf8mb4) as schedule_name, s.cron, s.interval_seconds,
           s.time_zone, s.is_paused, s.next_run_at, s.last_run_at, s.last_message_id,
           s.last_error, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type, s.priority,
           s.max_attempts, convert(s.group_key using utf8mb4) as group_key
    from rowq.queue q
    straight_join rowq.schedule s force index (primary) on s.part_id = q.part_id
    where q.part_id = v_part_id
       or p_queue_name is null
    order by q.queue_name, s.schedule_name;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/next_ticks.sql]
drop procedure if exists rowq.next_ticks;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.next_ticks(
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_after datetime(6),
    p_max_ticks int
)
sql security definer
modifies sql data
comment 'When a schedule with these times would run: a look before it is created. An interval counts from after.'
begin
-- routine   next_ticks
-- version   1
-- purpose   When a schedule with these times would run: a look before it is created. An interval counts from after.
-- promise   P31
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ711
-- differs   time zones as in create_schedule
    declare v_after, v_tick datetime(6);
    declare v_time_zone longtext default coalesce(p_time_zone, 'UTC');
    declare v_max_ticks int default coalesce(p_max_ticks, 5);
    declare v_bits varchar(136);
    declare v_ticks longtext;
    declare v_count int default 0;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if (p_cron is null) = (p_interval_seconds is null) then
        call rowq.internal_refuse('a schedule has either cron or interval_seconds');
    end if;
    call rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    call rowq.internal_check_time_zone(v_time_zone);
    call rowq.internal_check_range('max_ticks', v_max_ticks, 1, 1000);
    set v_after = coalesce(p_after, utc_timestamp(6));
    if v_after not between timestamp'2000-01-01 00:00:00' and timestamp'2100-01-01 00:00:00' then
        call rowq.internal_refuse('after must be a moment between the years 2000 and 2100');
    end if;
    if p_cron is not null then
        call rowq.internal_parse_cron(p_cron, v_bits);
    end if;

    set v_tick = v_after;
    ticks: while v_count < v_max_ticks do
        call rowq.internal_next_tick(
            v_bits, p_interval_seconds, v_time_zone, v_after, null, v_tick, v_tick
        );
        if v_tick is null then
            leave ticks;
        end if;
        set v_ticks = concat_ws(',', v_ticks, concat('"', v_tick, '"')), v_count = v_count + 1;
    end while;

    select j.tick
    from json_table(
        concat('[', coalesce(v_ticks, ''), ']'),
        '$[*]' columns (place for ordinality, tick datetime(6) path '$')
    ) j
    order by j.place;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/maintain.sql]
drop procedure if exists rowq.maintain;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.maintain(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.'
begin
-- routine   maintain
-- version   1
-- purpose   All housekeeping of one queue, or of every queue: schedules, promote, reap, expiry, floors, archive, results, history. Call it about once a second.
-- promise   P09 P11 P13 P14 P19 P24 P26 P27 P30 P31 P34 P36 P37
-- locks     rows of lane, tried, while a queue is kept; as promote, reap and archive
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   with more than 1000 queues, a call without a name takes 1000 of them at random; in an
--           open transaction the archive keeps its partitions, and nothing expires
    declare v_owns_transaction boolean;
    declare v_all, v_parts, v_idle, v_rows longtext default '[]';
    declare v_part_id, v_promoted, v_reaped, v_died, v_archived, v_purged, v_dropped, v_expired int;
    declare v_elected boolean;
    declare v_at int default 0;
    declare v_until datetime(6);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    -- More than a batch of results and history goes only till then, whatever the number of queues,
    -- because the next call is what deliveries wait for.
    set v_until = utc_timestamp(6) + interval 100000 microsecond;
    call rowq.internal_check_batch_size(p_batch_size);
    call rowq.internal_begin_work(v_owns_transaction);
    if p_queue_name is null then
        select json_arrayagg(h.part_id) into v_parts
        from (
            select q.part_id
            from rowq.queue q
            order by rand()
            limit 1000
        ) h;
    else
        set v_part_id = null;
        select q.part_id into v_part_id
        from rowq.queue q
        where q.queue_name = cast(p_queue_name as binary);
        set v_parts = json_array(v_part_id);
    end if;
    call rowq.internal_commit_work(v_owns_transaction);
    if p_queue_name is not null and v_part_id is null then
        call rowq.internal_refuse_queue(p_queue_name);
    end if;

    -- Find the queues in which nothing is to be done by one statement for all of them, so that many
    -- idle queues cost next to nothing.
    set v_all = coalesce(v_parts, '[]');
    call rowq.internal_idle_parts(v_all, v_idle, v_parts);
    select json_arrayagg(json_array(j.part_id, j.is_elected, 0, 0, 0, 0, 0, 0, 0)) into v_rows
    from json_table(
        v_idle, '$[*]' columns (part_id int path '$[0]', is_elected tinyint path '$[1]')
    ) j;
    set v_rows = coalesce(v_rows, '[]');

    while v_at < coalesce(json_length(v_parts), 0) do
        begin
            -- A queue that was dropped meanwhile is an error only if the caller has named it.
            declare exit handler for sqlstate '45701'
            begin
                if p_queue_name is not null then
                    resignal;
                end if;
            end;
            set v_part_id = json_unquote(json_extract(v_parts, concat('$[', v_at, ']'))),
                v_at = v_at + 1;
            call rowq.internal_maintain_queue(
                v_part_id, coalesce(p_batch_size, 1000), v_until, v_elected, v_promoted, v_reaped,
                v_died, v_archived, v_purged, v_dropped, v_expired
            );
            set v_rows = json_array_append(
                v_rows, '$',
                json_array(
                    v_part_id, v_elected, v_promoted, v_reaped, v_died, v_archived, v_purged,
                    v_dropped, v_expired
                )
            );
        end;
    end while;

    select convert(q.queue_name using utf8mb4) as queue_name, j.elected, j.promoted, j.reaped,
           j.died, j.archived, j.purged, j.partitions_dropped, j.expired
    from json_table(
        v_rows,
        '$[*]' columns (
            part_id int path '$[0]',
            elected tinyint path '$[1]',
            promoted int path '$[2]',
            reaped int path '$[3]',
            died int path '$[4]',
            archived int path '$[5]',
            purged int path '$[6]',
            partitions_dropped int path '$[7]',
            expired int path '$[8]'
        )
    ) j
    straight_join rowq.queue q on q.part_id = j.part_id;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/reap.sql]
drop procedure if exists rowq.reap;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.reap(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Take unfinished messages back from claims whose lease ran out.'
begin
-- routine   reap
-- version   1
-- purpose   Take unfinished messages back from claims whose lease ran out.
-- promise   P03 P09 P34 P37
-- locks     the part, shared; expired claim rows, passing over locked ones; message rows; new
--           history rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_max_attempts, v_history_days, v_reaped, v_died int;

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

            call rowq.internal_check_batch_size(p_batch_size);

            set v_part_id = null;
            select q.part_id, q.max_attempts, q.history_days
            into v_part_id, v_max_attempts, v_history_days
            from rowq.queue q
            where q.queue_name = cast(p_queue_name as binary);
            if v_part_id is null then
                call rowq.internal_refuse_queue(p_queue_name);
            end if;
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_reap(
                v_part_id, v_max_attempts, v_history_days, coalesce(p_batch_size, 1000),
                v_owns_transaction, v_reaped, v_died
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_reaped as reaped, v_died as died;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/promote.sql]
drop procedure if exists rowq.promote;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.promote(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Make delayed messages ready whose time has come.'
begin
-- routine   promote
-- version   1
-- purpose   Make delayed messages ready whose time has come.
-- promise   P11
-- locks     the part, shared; delayed rows, passing over locked ones; new ready rows
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_promoted int;

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
            -- A session that is not pinned may cut what json_arrayagg returns at a megabyte, and
            -- the keys of many messages are longer.
            /*M!100600 call rowq.internal_pin_session(@@timestamp); */
            call rowq.internal_begin_work(v_owns_transaction);

            call rowq.internal_check_batch_size(p_batch_size);

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
            call rowq.internal_promote(
                v_part_id, coalesce(p_batch_size, 1000), v_owns_transaction, v_promoted
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_promoted as promoted;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/archive.sql]
drop procedure if exists rowq.archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.archive(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Move finished messages of a queue with archive_days above 0 to the archive.'
begin
-- routine   archive
-- version   1
-- purpose   Move finished messages of a queue with archive_days above 0 to the archive.
-- promise   P19
-- locks     finished rows, passing over locked ones; message rows; new archive rows
-- commits   its own transaction where the caller has none; never the caller's, and implicitly
-- errors    RQ701 RQ711
-- differs   in an open transaction no partition is added
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_archived int;

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

            call rowq.internal_check_batch_size(p_batch_size);

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            if v_owns_transaction then
                call rowq.internal_commit_work(v_owns_transaction);
                call rowq.internal_open_days(v_part_id, coalesce(p_batch_size, 1000));
                call rowq.internal_begin_work(v_owns_transaction);
            end if;
            call rowq.internal_archive(
                v_part_id, coalesce(p_batch_size, 1000), v_owns_transaction, v_archived
            );

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_archived as archived;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/purge_archive.sql]
drop procedure if exists rowq.purge_archive;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.purge_archive(p_queue_name longtext, p_batch_size int)
sql security definer
modifies sql data
comment 'Delete archived messages older than the queue''s archive_days and attempts older than its history_days, and drop partitions that no queue needs.'
begin
-- routine   purge_archive
-- version   1
-- purpose   Delete archived messages older than the queue's archive_days and attempts older than its history_days, and drop partitions that no queue needs.
-- promise   P19 P37
-- locks     archive rows; the queue's part against a drop, a row of lane, history rows; for a drop
--           the archive, waiting for a second at most
-- commits   its own transaction where the caller has none; never the caller's, and implicitly
-- errors    RQ701 RQ711
-- differs   in an open transaction no partition is dropped
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_part_id, v_archive_days, v_history_days, v_purged int;
    declare v_has_history boolean;
    declare v_dropped int default 0;
    declare v_attempts int;

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

            call rowq.internal_check_batch_size(p_batch_size);

            call rowq.internal_require_queue(p_queue_name, v_part_id);
            if v_owns_transaction then
                call rowq.internal_commit_work(v_owns_transaction);
                call rowq.internal_drop_days(v_dropped);
                call rowq.internal_begin_work(v_owns_transaction);
            end if;
            select q.archive_days, q.has_history, q.history_days
            into v_archive_days, v_has_history, v_history_days
            from rowq.queue q
            where q.part_id = v_part_id;
            call rowq.internal_purge_archive(
                v_part_id, utc_timestamp(6) - interval v_archive_days day,
                coalesce(p_batch_size, 1000), v_owns_transaction, v_purged
            );
            set v_attempts = 0;
            if v_has_history then
                -- drop_queue locks these rows in another order.
                call rowq.internal_lock_part_shared(v_part_id, p_queue_name);
                call rowq.internal_purge_history(
                    v_part_id, v_history_days, coalesce(p_batch_size, 1000), v_attempts
                );
            end if;

            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
    end loop;

    select v_purged + v_attempts as purged, v_dropped as partitions_dropped;

    if @rowq_pinned then
        call rowq.internal_unpin_session();
    end if;
end//
delimiter ;

-- [file routines/queue_stats.sql]
drop procedure if exists rowq.queue_stats;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.queue_stats(p_queue_name longtext, p_max_count int)
sql security definer
modifies sql data
comment 'Counts, age and settings of one queue or all.'
begin
-- routine   queue_stats
-- version   1
-- purpose   Counts, age and settings of one queue or all.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_limit int default coalesce(p_max_count, 100000);
    declare v_part_id, v_last int default 0;
    declare v_ready, v_delayed, v_leased, v_dead, v_blocked bigint;
    declare v_oldest datetime(6);
    declare v_counts longtext;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_check_range('max_count', v_limit, 1, 100000000);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_last);
        set v_last = v_last - 1;
    end if;

    queues: loop
        set v_part_id = null;
        select q.part_id into v_part_id
        from rowq.queue q force index (primary)
        where q.part_id > v_last
        order by q.part_id
        limit 1;
        if v_part_id is null then
            leave queues;
        end if;
        set v_last = v_part_id;
        call rowq.internal_count_messages(
            v_part_id, v_limit, v_ready, v_delayed, v_leased, v_dead, v_blocked
        );
        call rowq.internal_oldest_ready(v_part_id, v_oldest);
        set v_counts = concat_ws(
            ',', v_counts,
            json_array(
                v_part_id, v_ready, v_delayed, v_leased, v_dead, v_blocked,
                timestampdiff(microsecond, v_oldest, utc_timestamp(6)) / 1e6
            )
        );
        if p_queue_name is not null then
            leave queues;
        end if;
    end loop;

    select convert(q.queue_name using utf8mb4) as queue_name, q.paused_at is not null as is_paused,
           j.ready, j.`delayed`, j.leased, j.dead, j.blocked, j.oldest_ready_seconds,
           q.lease_seconds, q.max_attempts, q.backoff_base_seconds, q.backoff_factor,
           q.backoff_cap_seconds, q.backoff_jitter, q.archive_days,
           q.max_body_length, q.group_limit, q.group_after_dead, q.group_pause_seconds,
           q.max_leased, q.rate_limit, q.rate_seconds, q.result_seconds,
           q.history_days
    from json_table(
        concat('[', v_counts, ']'),
        '$[*]' columns (
            part_id int path '$[0]',
            ready bigint path '$[1]',
            `delayed` bigint path '$[2]',
            leased bigint path '$[3]',
            dead bigint path '$[4]',
            blocked bigint path '$[5]',
            oldest_ready_seconds double path '$[6]'
        )
    ) j
    straight_join rowq.queue q on q.part_id = j.part_id
    order by q.queue_name;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/get_message.sql]
drop procedure if exists rowq.get_message;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.get_message(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'Where a message is and everything about it; no row when rowq does not know it.'
begin
-- routine   get_message
-- version   1
-- purpose   Where a message is and everything about it; no row when rowq does not know it.
-- promise   P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_part_id int;
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_worker_name varchar(200);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_message_id is null then
        call rowq.internal_refuse('message_id is missing');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = v_part_id;

    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            v_part_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_state, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
        select m.message_id, v_state as state, v_lane div 2 as priority, v_attempt as attempt,
               coalesce(m.max_attempts, q.max_attempts) as max_attempts, m.message_type,
               m.headers, m.body, m.body_binary,
               convert(m.dedup_key using utf8mb4) as dedup_key, m.enqueued_at,
               v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
               v_lease_until as lease_until, v_finished_at as finished_at,
               if(d.message_id is null, m.last_error, d.last_error) as last_error,
               convert(m.group_key using utf8mb4) as group_key, v_waits_for as waits_for,
               m.expires_at, v_progress as progress
        from rowq.message m force index (primary)
        straight_join rowq.queue q on q.part_id = m.part_id
        left join rowq.dead d force index (primary)
            on d.part_id = m.part_id
           and d.message_id = m.message_id
        where m.message_id = p_message_id
          and m.part_id = v_part_id;
    else
        select a.message_id, a.state, a.lane div 2 as priority, a.attempt,
               cast(null as signed) as max_attempts, a.message_type, a.headers, a.body,
               a.body_binary, convert(a.dedup_key using utf8mb4) as dedup_key, a.enqueued_at,
               v_due_at as due_at, v_claim_id as claim_id, v_worker_name as worker_name,
               v_lease_until as lease_until, a.finished_at, cast(null as char) as last_error,
               convert(a.group_key using utf8mb4) as group_key, v_waits_for as waits_for,
               cast(null as datetime(6)) as expires_at, v_progress as progress
        from rowq.archive a force index (archive_message_ix)
        where a.part_id = v_part_id
          and a.message_id = p_message_id;
    end if;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/find_message.sql]
drop procedure if exists rowq.find_message;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.find_message(p_queue_name longtext, p_dedup_key longtext)
sql security definer
modifies sql data
comment 'Find the unfinished message that has a dedup key, and return what get_message does.'
begin
-- routine   find_message
-- version   1
-- purpose   Find the unfinished message that has a dedup key, and return what get_message does.
-- promise   P12 P20
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that ends while it is looked for may be returned as one that has ended
    declare v_part_id int;
    declare v_message_id bigint;
    declare v_key varbinary(800);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_dedup_key is null then
        call rowq.internal_refuse('dedup_key is missing');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    -- No message has a longer key, and none has the id 0.
    if char_length(p_dedup_key) <= 200 then
        set v_key = p_dedup_key;
        select d.message_id into v_message_id
        from rowq.dedup d force index (primary)
        where d.part_id = v_part_id
          and d.dedup_key = v_key;
    end if;
    call rowq.get_message(p_queue_name, coalesce(v_message_id, 0));
end//
delimiter ;

-- [file routines/get_result.sql]
drop procedure if exists rowq.get_result;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.get_result(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.'
begin
-- routine   get_result
-- version   1
-- purpose   How a message has ended, and its result; of one that has not ended its state; no row when rowq does not know it.
-- promise   P32
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_part_id int;
    declare v_state varchar(20);
    declare v_finished_at datetime(6);
    declare v_result longtext;
    declare v_last_error varchar(2000);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_message_id is null then
        call rowq.internal_refuse('message_id is missing');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_part_id);
    call rowq.internal_read_result(
        v_part_id, p_message_id, v_state, v_finished_at, v_result, v_last_error
    );

    select p_message_id as message_id, v_state as state, v_finished_at as finished_at,
           json_extract(v_result, '$') as result, v_last_error as last_error
    from dual
    where v_state is not null;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/wait_for_result.sql]
drop procedure if exists rowq.wait_for_result;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.wait_for_result(
    p_queue_name longtext,
    p_message_id bigint,
    p_wait_seconds double
)
sql security definer
modifies sql data
comment 'Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.'
begin
-- routine   wait_for_result
-- version   1
-- purpose   Do what get_result does, but wait until the message has ended or the time is up; the queue must keep results.
-- promise   P17 P32
-- locks     none
-- commits   after each look, so that no snapshot is held while it waits; needs autocommit
-- errors    RQ701 RQ711 RQ713
-- differs   the row comes as one JSON object, in a result set of one column
    declare v_wait_seconds double default coalesce(p_wait_seconds, 20);
    declare v_until datetime(6);
    declare v_pause double;
    declare v_answer longtext;
    -- Where a transaction is open, "set transaction" fails with 1568.
    declare exit handler for 1568
    begin
        signal sqlstate '45713' set message_text =
            'RQ713 wrong_transaction_state: wait_for_result commits while it waits';
    end;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_check_range('wait_seconds', v_wait_seconds, 0, 3600);
    if @@autocommit = 0 then
        signal sqlstate '45713'
            set message_text = 'RQ713 wrong_transaction_state: wait_for_result needs autocommit';
    end if;
    set transaction isolation level read committed;
    call rowq.internal_pin_session(@@timestamp);
    set v_until = utc_timestamp(6) + interval round(v_wait_seconds * 1000000) microsecond;

    -- Each statement of a look is a transaction of its own, so no snapshot is held in the sleep.
    looks: loop
        call rowq.internal_poll_result(p_queue_name, p_message_id, v_until, v_pause, v_answer);
        if v_pause is null then
            leave looks;
        end if;
        if sleep(v_pause) then
            signal sqlstate '70100'
                set mysql_errno = 1317, message_text = 'Query execution was interrupted';
        end if;
    end loop;

    select v_answer as answer;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/get_history.sql]
drop procedure if exists rowq.get_history;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.get_history(p_queue_name longtext, p_message_id bigint)
sql security definer
modifies sql data
comment 'The attempts of a message: those that have ended within the queue''s history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.'
begin
-- routine   get_history
-- version   1
-- purpose   The attempts of a message: those that have ended within the queue's history_days, oldest first, then the present lease. A lease that ran out is lease_expired, also where no attempt was left; no row when rowq knows of none.
-- promise   P37
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_part_id int;
    declare v_enqueued_at, v_due_at, v_leased_at, v_lease_until, v_finished_at datetime(6);
    declare v_state varchar(20);
    declare v_worker_name varchar(200);
    declare v_lane, v_attempt smallint;
    declare v_claim_id, v_waits_for bigint;
    declare v_group_key varbinary(800);
    declare v_progress varchar(2000);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_message_id is null then
        call rowq.internal_refuse('message_id is missing');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    -- Look for the present lease first: an attempt that ends between the looks is in the history
    -- then, and is left out where it is still taken for a lease.
    select m.enqueued_at, m.due_at, m.group_key into v_enqueued_at, v_due_at, v_group_key
    from rowq.message m force index (primary)
    where m.message_id = p_message_id
      and m.part_id = v_part_id;
    if v_enqueued_at is not null then
        call rowq.internal_locate_messages(
            v_part_id, p_message_id, v_enqueued_at, v_group_key, v_due_at, v_state, v_lane,
            v_attempt, v_claim_id, v_worker_name, v_leased_at, v_lease_until, v_finished_at,
            v_waits_for, v_progress
        );
    end if;

    select h.attempt, h.worker_name, h.leased_at, h.ended_at, h.outcome, h.error
    from (
        select k.attempt, k.worker_name, k.leased_at, k.ended_at, k.outcome, k.error,
               k.claim_id
        from rowq.history k force index (history_message_ix)
        where k.part_id = v_part_id
          and k.message_id = p_message_id
          and k.message_id > 0
        union all
        select v_attempt, v_worker_name, v_leased_at, null, null, null, v_claim_id
        from dual
        where v_claim_id is not null
          and not exists (
              select 1
              from rowq.history k force index (history_message_ix)
              where k.part_id = v_part_id
                and k.message_id = p_message_id
                and k.claim_id = v_claim_id
          )
    ) h
    order by h.ended_at is null, h.ended_at, h.claim_id;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/list_dead.sql]
drop procedure if exists rowq.list_dead;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.list_dead(
    p_queue_name longtext,
    p_after_message_id bigint,
    p_max_messages int,
    p_before_message_id bigint,
    p_message_type longtext
)
sql security definer
modifies sql data
comment 'Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.'
begin
-- routine   list_dead
-- version   1
-- purpose   Dead messages, without their bodies, in the order of their ids, or backwards before one; of one type only, if given.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   nothing
    declare v_part_id int;
    declare v_limit int default coalesce(p_max_messages, 100);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    if p_before_message_id is null then
        select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d force index (primary)
        straight_join rowq.message m force index (primary) on m.message_id = d.message_id
        where d.part_id = v_part_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and (
              p_message_type is null
              or cast(m.message_type as binary) = cast(p_message_type as binary)
          )
        order by d.part_id, d.message_id
        limit v_limit;
    else
        select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, m.enqueued_at,
               d.died_at, d.last_error
        from rowq.dead d force index (primary)
        straight_join rowq.message m force index (primary) on m.message_id = d.message_id
        where d.part_id = v_part_id
          and d.message_id > coalesce(p_after_message_id, 0)
          and d.message_id < p_before_message_id
          and (
              p_message_type is null
              or cast(m.message_type as binary) = cast(p_message_type as binary)
          )
        order by d.part_id desc, d.message_id desc
        limit v_limit;
    end if;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/list_claims.sql]
drop procedure if exists rowq.list_claims;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.list_claims(
    p_queue_name longtext,
    p_after_claim_id bigint,
    p_max_claims int
)
sql security definer
modifies sql data
comment 'Who is at work on what: the claims of one queue or all, in the order of their ids.'
begin
-- routine   list_claims
-- version   1
-- purpose   Who is at work on what: the claims of one queue or all, in the order of their ids.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a claim that was committed late is listed once maintain has corrected its floor
    declare v_limit int default coalesce(p_max_claims, 100);
    declare v_part_id, v_last int default 0;
    declare v_after bigint;
    declare v_more longtext;
    declare v_claims longtext default '[]';
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_check_range('max_claims', v_limit, 1, 10000);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_last);
        set v_last = v_last - 1;
    end if;

    queues: loop
        set v_part_id = null;
        select q.part_id into v_part_id
        from rowq.queue q force index (primary)
        where q.part_id > v_last
          and (p_queue_name is null or q.part_id = v_last + 1)
        order by q.part_id
        limit 1;
        if v_part_id is null then
            leave queues;
        end if;
        set v_last = v_part_id;

        select greatest(l.floor - 1, coalesce(p_after_claim_id, 0), 0) into v_after
        from rowq.lane l force index (primary)
        where l.part_id = v_part_id
          and l.lane = -1;
        select json_arrayagg(json_array(v_part_id, h.claim_id)) into v_more
        from (
            select c.claim_id, c.lease_until
            from rowq.claim c force index (primary)
            where c.part_id = v_part_id
              and c.claim_id > v_after
            order by c.part_id, c.claim_id
            limit v_limit
        ) h;
        set v_claims = json_merge_preserve(v_claims, coalesce(v_more, '[]'));
        if json_length(v_claims) > v_limit then
            -- Keep one page, so that the list does not grow with the number of queues.
            select json_arrayagg(json_array(h.part_id, h.claim_id)) into v_claims
            from (
                select j.part_id, j.claim_id
                from json_table(
                    v_claims,
                    '$[*]' columns (part_id int path '$[0]', claim_id bigint path '$[1]')
                ) j
                order by j.claim_id
                limit v_limit
            ) h;
        end if;
        if p_queue_name is not null then
            leave queues;
        end if;
    end loop;

    select convert(q.queue_name using utf8mb4) as queue_name, c.claim_id, c.worker_name,
           coalesce(json_length(c.messages), c.last_id - c.first_id + 1) as message_count,
           c.lease_until,
           timestampdiff(microsecond, utc_timestamp(6), c.lease_until) / 1e6 as lease_left_seconds
    from json_table(
        v_claims, '$[*]' columns (part_id int path '$[0]', claim_id bigint path '$[1]')
    ) j
    straight_join rowq.claim c force index (primary)
        on c.part_id = j.part_id
       and c.claim_id = j.claim_id
    straight_join rowq.queue q force index (primary) on q.part_id = j.part_id
    order by j.claim_id;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/list_delayed.sql]
drop procedure if exists rowq.list_delayed;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.list_delayed(
    p_queue_name longtext,
    p_after_due_at datetime(6),
    p_after_message_id bigint,
    p_max_messages int
)
sql security definer
modifies sql data
comment 'Messages that wait for their time, without their bodies, in the order in which they become due.'
begin
-- routine   list_delayed
-- version   1
-- purpose   Messages that wait for their time, without their bodies, in the order in which they become due.
-- promise   P11
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701 RQ711
-- differs   a message that was committed late is listed once maintain has corrected its floor
    declare v_part_id int;
    declare v_limit int default coalesce(p_max_messages, 100);
    declare v_from datetime(6);
    declare v_after bigint default coalesce(p_after_message_id, 0);
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_check_range('max_messages', v_limit, 1, 10000);
    if p_after_due_at is null and v_after <> 0 then
        call rowq.internal_refuse('after_message_id goes together with after_due_at');
    end if;
    call rowq.internal_require_queue(p_queue_name, v_part_id);

    -- Begin no sooner than where the first live row may be, beyond the dead ones.
    select timestamp'1970-01-01 00:00:00' + interval l.floor microsecond into v_from
    from rowq.lane l force index (primary)
    where l.part_id = v_part_id
      and l.lane = -2;
    if p_after_due_at >= v_from then
        set v_from = p_after_due_at;
    else
        set v_after = 0;
    end if;

    select d.message_id, d.lane div 2 as priority, d.attempt, m.message_type, d.due_at,
           m.last_error
    from rowq.delayed d force index (primary)
    straight_join rowq.message m force index (primary) on m.message_id = d.message_id
    where d.part_id = v_part_id
      and (d.due_at = v_from and d.message_id > v_after or d.due_at > v_from)
      and d.message_id > 0
    order by d.part_id, d.due_at, d.message_id
    limit v_limit;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/list_topics.sql]
drop procedure if exists rowq.list_topics;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.list_topics(p_queue_name longtext)
sql security definer
modifies sql data
comment 'The patterns of one queue or all, in the order of the queues'' names.'
begin
-- routine   list_topics
-- version   1
-- purpose   The patterns of one queue or all, in the order of the queues' names.
-- promise   P35
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    RQ701
-- differs   nothing
    declare v_part_id int;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    if p_queue_name is not null then
        call rowq.internal_require_queue(p_queue_name, v_part_id);
    end if;

    select convert(q.queue_name using utf8mb4) as queue_name,
           convert(b.topic_pattern using utf8mb4) as topic_pattern
    from rowq.topic_binding b
    straight_join rowq.queue q force index (primary) on q.part_id = b.part_id
    where v_part_id is null
       or b.part_id = v_part_id
    order by q.queue_name, b.topic_pattern;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/health.sql]
drop procedure if exists rowq.health;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.health()
sql security definer
modifies sql data
comment 'Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.'
begin
-- routine   health
-- version   1
-- purpose   Report what needs attention: who holds back clean-up, overdue messages, expired leases, dead messages, a sequence behind its data.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   checks of horizon, purge and numbers are this engine's
    declare v_checks, v_more longtext;
    declare v_part_id, v_last int default 0;
    declare exit handler for sqlexception
    begin
        call rowq.internal_unpin_session();
        resignal;
    end;

    call rowq.internal_pin_session(@@timestamp);
    call rowq.internal_health_server(v_checks);
    queues: loop
        set v_part_id = null;
        select q.part_id into v_part_id
        from rowq.queue q force index (primary)
        where q.part_id > v_last
        order by q.part_id
        limit 1;
        if v_part_id is null then
            leave queues;
        end if;
        set v_last = v_part_id;
        call rowq.internal_health_queue(v_part_id, v_more);
        set v_checks = concat_ws(',', v_checks, v_more);
    end loop;

    select j.check_name, convert(q.queue_name using utf8mb4) as queue_name,
           case
               when j.value >= j.critical then 'critical'
               when j.value >= j.warning then 'warning'
               else 'ok'
           end as status,
           j.value, j.detail
    from json_table(
        concat('[', v_checks, ']'),
        '$[*]' columns (
            check_name varchar(100) path '$[0]',
            part_id int path '$[1]',
            value double path '$[2]',
            warning double path '$[3]',
            critical double path '$[4]',
            detail varchar(500) path '$[5]'
        )
    ) j
    left join rowq.queue q on q.part_id = j.part_id
    where j.part_id is null
       or q.part_id is not null
    order by j.check_name, q.queue_name;

    call rowq.internal_unpin_session();
end//
delimiter ;

-- [file routines/version.sql]
drop procedure if exists rowq.version;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.version()
sql security definer
reads sql data
comment 'What is installed.'
begin
-- routine   version
-- version   1
-- purpose   What is installed.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    select
        (select m.value from rowq.meta m where m.name = 'rowq_version') as rowq_version,
        (select cast(m.value as signed) from rowq.meta m where m.name = 'schema_version')
            as schema_version,
        concat(
            if(version() like '%MariaDB%', 'MariaDB ', 'MySQL '),
            substring_index(version(), '-', 1)
        ) as engine;
end//
delimiter ;

-- [file routines/put.sql]
drop procedure if exists rowq.put;

delimiter //
create definer = 'rowq_owner'@'localhost' procedure rowq.put(
    p_queue_name longtext,
    p_body longtext
)
sql security definer
modifies sql data
comment 'Hand over one message that is a text body and nothing else: the short form of enqueue.'
begin
-- routine   put
-- version   1
-- purpose   Hand over one message that is a text body and nothing else: the short form of enqueue.
-- promise   P01 P05 P15 P20
-- locks     as enqueue, which it calls
-- commits   its own transaction where the caller has none; never the caller's
-- errors    RQ701 RQ711
-- differs   MariaDB and MySQL only: a parameter has no default there
    call rowq.enqueue(
        p_queue_name, p_body, null, null, null, null, null, null, null, null, null, null, null,
        null
    );
end//
delimiter ;

-- [after noted]
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    uuid(), 'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207',
    'my-0001-first-release', 'apply', user(), 'script', utc_timestamp(6)
from (select 1 as one) x
where not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = 'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207'
);
insert ignore into rowq.migration (migration_hash, migration_id, applied_at_utc)
values (
    'a836885857a7fbc3cc49cd7e62b859b387ebb2a0a654265068b65639ca3e7207',
    'my-0001-first-release', utc_timestamp(6)
);

insert into rowq.meta (name, value, changed_at)
values
    ('schema_version', '1', utc_timestamp(6)),
    ('rowq_version', '0.1.0', utc_timestamp(6))
on duplicate key update value = values(value), changed_at = values(changed_at);

-- [file grants.sql]
-- This script makes the roles, and gives each one execute on its routines and nothing else. It may
-- run any number of times, and takes back what else a role has in rowq. A role that is missing and
-- may not be created here is left out with a warning: create the role ("create role rowq_producer")
-- and run the script again. Run it after the procedures, because dropping a procedure drops the
-- rights to it. MariaDB runs it as a block; MySQL has no such blocks, so there it is a procedure
-- for a moment.
drop procedure if exists rowq.internal_grant;

delimiter //
/*!80000
create procedure rowq.internal_grant()
sql security invoker
modifies sql data
begin
*/
/*M!100600 begin not atomic */
    declare v_role_name varchar(80);
    declare v_text varchar(300);
    declare v_is_due boolean;
    declare v_is_end boolean default false;
    declare v_missing varchar(100) default '';
    declare v_warning varchar(128);
    -- Compare bytes, because the names in information_schema have a collation of their own.
    declare each_right cursor for
        select r.role_name,
               concat(
                   if(r.is_due, 'grant', 'revoke'), ' execute on procedure rowq.`',
                   replace(r.name, '`', '``'), '` ', if(r.is_due, 'to ', 'from '), r.role_name
               ),
               r.is_due
        from (
            select w.role_name, p.routine_name as name,
                   find_in_set(
                       cast(p.routine_name as binary), cast(w.routine_names as binary)
                   ) > 0 as is_due
            from (
                -- rights: generated from contract.toml by make generate
                select 'rowq_admin' as role_name, concat(
                    'create_queue,alter_queue,drop_queue,pause_queue,resume_queue,',
                    'bind_topic,unbind_topic,purge_queue,enqueue,enqueue_batch,',
                    'publish,publish_batch,dequeue_fast,dequeue_wait,peek,complete,',
                    'retry_later,fail_now,release,extend_lease,cancel,cancel_many,',
                    'reset,discard_dead,create_schedule,alter_schedule,drop_schedule,',
                    'run_schedule,list_schedules,next_ticks,maintain,reap,promote,',
                    'archive,purge_archive,queue_stats,get_message,find_message,',
                    'get_result,wait_for_result,get_history,list_dead,list_claims,',
                    'list_delayed,list_topics,health,version,put'
                ) as routine_names
                union all
                select 'rowq_producer' as role_name, concat(
                    'enqueue,enqueue_batch,publish,publish_batch,cancel,cancel_many,',
                    'next_ticks,get_result,wait_for_result,version,put'
                ) as routine_names
                union all
                select 'rowq_consumer' as role_name, concat(
                    'dequeue_fast,dequeue_wait,peek,complete,retry_later,fail_now,',
                    'release,extend_lease,maintain,reap,promote,archive,queue_stats,',
                    'version'
                ) as routine_names
                union all
                select 'rowq_monitor' as role_name, concat(
                    'list_schedules,next_ticks,queue_stats,list_dead,list_claims,',
                    'list_delayed,list_topics,health,version'
                ) as routine_names
                -- end of rights
            ) w
            cross join information_schema.routines p
            where p.routine_schema = 'rowq'
              and p.routine_type = 'PROCEDURE'
        ) r
        order by r.role_name, r.name;
    declare continue handler for not found set v_is_end = true;

    roles: begin
        -- Ignore errors: this account may lack the right (1227), and the engine may refuse the
        -- statement for a role that is there already (1396).
        declare continue handler for sqlexception begin end;
        create role if not exists rowq_producer;
        create role if not exists rowq_consumer;
        create role if not exists rowq_admin;
        create role if not exists rowq_monitor;
        revoke all privileges on rowq.* from rowq_producer;
        revoke all privileges on rowq.* from rowq_consumer;
        revoke all privileges on rowq.* from rowq_admin;
        revoke all privileges on rowq.* from rowq_monitor;
    end;

    open each_right;
    rights: loop
        fetch each_right into v_role_name, v_text, v_is_due;
        if v_is_end then
            leave rights;
        end if;
        begin
            -- Ignore that a right to be revoked was never given (1403).
            declare continue handler for sqlexception
            begin
                if v_is_due and not find_in_set(v_role_name, v_missing) then
                    set v_missing = concat(v_missing, if(v_missing = '', '', ','), v_role_name);
                end if;
            end;
            -- A prepared statement can take its text only from a variable of the session.
            set @rowq_statement = v_text;
            prepare rowq_right from @rowq_statement;
            execute rowq_right;
            deallocate prepare rowq_right;
        end;
    end loop;
    close each_right;
    set @rowq_statement = null;

    if v_missing <> '' then
        set v_warning = concat('not created, or without rights: ', v_missing);
        signal sqlstate '01000' set message_text = v_warning;
    end if;
end//
delimiter ;
/*!80000 call rowq.internal_grant() */ /*M!100600 do 0 */;
drop procedure if exists rowq.internal_grant;

-- [after done]
do release_lock(@rowq_lock);
