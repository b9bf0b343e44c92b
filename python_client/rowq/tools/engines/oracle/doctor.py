"""Checks on Oracle."""

from rowq.tools.doctor.check import EngineChecks, Setting, Status, is_one_of

# Objects of the owner: an account that only calls the routines sees none.
_INVALID = """
    select listagg(o.object_type || ' ' || o.object_name, ', ')
        within group (order by o.object_name)
    from user_objects o
    where o.status = 'INVALID'
      and (o.object_name = 'ROWQ' or substr(o.object_name, 1, 5) = 'ROWQ_')
"""
_UNLOCKED = """
    select listagg(s.table_name, ', ') within group (order by s.table_name)
    from user_tab_statistics s
    where s.table_name in ('ROWQ_READY', 'ROWQ_DELAYED', 'ROWQ_CLAIM', 'ROWQ_MESSAGE')
      and s.stattype_locked is null
"""
_BEYOND = """
    select max(p.privilege)
    from user_sys_privs p
    where p.privilege like '% ANY %'
      and exists (
          select null
          from user_objects o
          where o.object_name = 'ROWQ'
            and o.object_type = 'PACKAGE BODY'
      )
"""
# A package of the owner may run with the caller's privileges. The block uses only names of SYS:
# others are resolved in the owner's schema.
_BEFORE = """
    declare
        v_rights pls_integer;
    begin
        if sys_context('userenv', 'current_schema') <> sys_context('userenv', 'session_user') then
            select count(*) into v_rights
            from sys.session_privs p
            where p.privilege like '% ANY %';
            if v_rights > 0 then
                sys.dbms_standard.raise_application_error(
                    -20803, 'RQ803 missing_privilege: as a DBA in the schema of '
                    || sys_context('userenv', 'current_schema')
                    || ', its code could run with your privileges; connect as the owner'
                );
            end if;
        end if;
    end;
"""
_SPACE = """
    select max(t.segment_space_management)
    from user_users u
    join user_tablespaces t on t.tablespace_name = u.default_tablespace
"""

CHECKS = EngineChecks(
    now="""
        select (cast(sys_extract_utc(s.moment) as date) - date '1970-01-01') * 86400
            + mod(extract(second from s.moment), 1)
        from (select systimestamp as moment from dual) s
    """,
    version="""
        select to_number(regexp_substr(max(p.version_full), '^[0-9]+'))
        from product_component_version p
        where p.product like 'Oracle%'
    """,
    is_supported=lambda number: number is not None and number >= 19,
    supported="Oracle Database 19c or newer",
    before=_BEFORE,
    settings=(
        Setting(
            "database_role",
            "select sys_context('userenv', 'database_role') from dual",
            is_one_of("PRIMARY", "SNAPSHOT STANDBY"),
            Status.FAILED,
            "this is a read-only standby; use the primary's service",
        ),
        Setting(
            "nls_characterset",
            "select p.value from nls_database_parameters p where p.parameter = 'NLS_CHARACTERSET'",
            is_one_of("AL32UTF8"),
            Status.WARNING,
            "bodies and names lose characters that this character set does not have",
        ),
        Setting(
            "segment_space_management",
            _SPACE,
            is_one_of("AUTO", None),
            Status.FAILED,
            "SecureFile LOBs require an ASSM tablespace; change the owner's default tablespace",
        ),
        Setting(
            "rights of the owner",
            _BEYOND,
            is_one_of(None),
            Status.WARNING,
            "rowq runs with them and needs none; use a separate account for rowq",
        ),
        Setting(
            "invalid objects",
            _INVALID,
            is_one_of(None),
            Status.FAILED,
            "they did not compile; run rowq migrate again, and check user_errors",
        ),
        Setting(
            "statistics that are not locked",
            _UNLOCKED,
            is_one_of(None),
            Status.WARNING,
            "plans may change as queues fill and empty; run sql/oracle/statistics.sql",
        ),
        Setting(
            "commit_wait",
            "select max(p.value) from v$parameter p where p.name = 'commit_wait'",
            lambda value: str(value).upper() != "NOWAIT",
            Status.WARNING,
            "a crash can lose the last committed messages",
        ),
    ),
)
