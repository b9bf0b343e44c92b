"""Forms of SQL and PL/SQL that rowq depends on, tested without rowq.

They run first: if the packages do not compile, they show why. Not tested on SQL Server and Oracle.
"""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import oracledb
import pytest

from rowq.errors import CannotConnect
from rowq.tools import migrate
from rowq.tools.engines.oracle.script import units
from rowq.tools.migrate.release import release_for
from tests.engine_only.oracle.installed import grant, rows
from tests.engines.base import wait_until_blocked
from tests.engines.oracle.server import RIGHTS, OracleServer
from tests.engines.oracle.session import Session, as_account, number_of, open_session

pytestmark = pytest.mark.pitfall("oracle 41")

NO_GROUP_FUNCTION, NO_SPACE, REFUSED = 937, 1950, 20803

HOLDS = {
    "RAW values of more than 16383 bytes are compared": """
        declare
            v_long  raw(32767) := utl_raw.copies(hextoraw('00'), 20000);
            v_other raw(32767) := v_long;
        begin
            if v_long <> v_other or v_long in (hextoraw('01'), hextoraw('02')) then
                raise_application_error(-20999, 'they differ');
            end if;
        end;
        """,
    "an element found by another collection is bound in SQL": """
        declare
            type t_pair is record (message_id number);
            type t_pairs is table of t_pair index by pls_integer;
            type t_numbers is table of number index by pls_integer;
            type t_positions is table of pls_integer index by varchar2(4000);
            v_pairs   t_pairs;
            v_numbers t_numbers;
            v_order   t_positions;
            v_at      varchar2(4000) := 'k';
            v_sum     number;
        begin
            v_order(v_at) := 1;
            v_pairs(1).message_id := 7;
            v_numbers(1) := 8;
            select v_pairs(v_order(v_at)).message_id + v_numbers(v_order(v_at))
            into v_sum
            from dual;
            if v_sum <> 15 then
                raise_application_error(-20999, 'it is ' || v_sum);
            end if;
        end;
        """,
    "a timestamp is converted to a time zone in a variable": """
        declare
            v_time timestamp(6) := timestamp '2026-07-01 12:00:00';
            v_zone   varchar2(64) := 'Europe/Berlin';
            v_local  timestamp(6);
        begin
            v_local := cast(from_tz(v_time, '+00:00') at time zone v_zone as timestamp);
            if v_local <> timestamp '2026-07-01 14:00:00' then
                raise_application_error(-20999, to_char(v_local, 'hh24:mi'));
            end if;
        end;
        """,
    "a calendar is named when a timestamp is parsed or printed": """
        declare
            v_time timestamp(6);
        begin
            v_time := to_timestamp('2026-01-01', 'yyyy-mm-dd', 'nls_calendar=gregorian');
            if to_char(v_time, 'yyyy-mm-dd"T"hh24:mi:ss.ff6', 'nls_calendar=gregorian')
                <> '2026-01-01T00:00:00.000000'
            then
                raise_application_error(-20999, 'the timestamps differ');
            end if;
        end;
        """,
    "JSON holds texts beyond 32767 bytes and numbers beyond 1e126": """
        declare
            v_long   clob := 'x';
            v_object json_object_t := json_object_t('{"a": null, "n": 1e400}');
            v_again  json_object_t;
        begin
            dbms_lob.append(v_long, rpad('y', 32767, 'y'));
            dbms_lob.append(v_long, rpad('z', 32767, 'z'));
            v_object.put('long', v_long);
            v_again := json_object_t.parse(v_object.to_clob());
            if not v_again.get('a').is_null()
               or dbms_lob.compare(v_again.get_clob('long'), v_long) <> 0
            then
                raise_application_error(-20999, 'they differ');
            end if;
        end;
        """,
    "an array of JSON is aggregated in a case of a subquery": """
        declare
            v_rows sys_refcursor;
            v_ids  clob;
        begin
            open v_rows for
                select case
                           when d.dummy = 'X'
                               then (
                                   select case
                                              when count(*) > 0
                                                  then json_arrayagg(a.column_value returning clob)
                                          end
                                   from table(sys.odcinumberlist(1, 2)) a
                               )
                       end as ids
                from dual d;
            fetch v_rows into v_ids;
            close v_rows;
            if v_ids <> '[1,2]' then
                raise_application_error(-20999, v_ids);
            end if;
        end;
        """,
    "rows of a list and a table are ordered beside LOBs of an outer join": """
        declare
            v_rows    sys_refcursor;
            v_list    sys.odcinumberlist := sys.odcinumberlist(2, null);
            v_outcome varchar2(20);
            v_place   number;
            v_body    clob;
            v_seen    varchar2(100);
        begin
            open v_rows for
                select /*+ leading(n m) use_nl(m) */ n.outcome, n.place, m.body
                from (
                    select 'leased' as outcome, 10000 + length(d.dummy) as place
                    from dual d
                    union all
                    select 'stale' as outcome, s.column_value as place
                    from table(v_list) s
                    where s.column_value is null
                       or s.column_value > 1
                ) n
                left join (select to_clob('x') as body, d.dummy from dual d) m
                  on m.dummy = 'X'
                 and n.outcome = 'leased'
                order by n.place;
            loop
                fetch v_rows into v_outcome, v_place, v_body;
                exit when v_rows%notfound;
                v_seen := v_seen || v_outcome || v_place || v_body || ' ';
            end loop;
            close v_rows;
            if v_seen <> 'stale2 leased10001x stale ' then
                raise_application_error(-20999, v_seen);
            end if;
        end;
        """,
    "an aggregate is selected with one of a joined query": """
        declare
            v_engine varchar2(200);
        begin
            select max(d.dummy) || max(e.engine) into v_engine
            from dual d
            cross join (select max(p.product) as engine from product_component_version p) e;
            if v_engine is null then
                raise_application_error(-20999, 'it is null');
            end if;
        end;
        """,
}
"""Blocks that raise an error if a form does not do what rowq expects."""


@pytest.fixture
def session(server: OracleServer, empty_database: str) -> Iterator[Session]:
    """Return a session in an empty schema."""
    with closing(server.connect(empty_database)) as opened:
        yield opened


def run(session: Session, statement: str) -> None:
    """Run a statement."""
    with closing(session.cursor()) as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("block", HOLDS.values(), ids=HOLDS)
def test_form_does_what_rowq_expects(session: Session, block: str) -> None:
    run(session, block)


def test_tables_are_locked_together_in_a_block(session: Session) -> None:
    for name in ("one", "two"):
        run(session, f"create table {name} (a number)")
    run(
        session,
        """
        begin
            savepoint before_all;
            lock table one in share row exclusive mode wait 1;
            rollback to savepoint before_all;
            lock table one, two in share row exclusive mode nowait;
            rollback;
        end;
        """,
    )


def test_fetch_into_a_record_with_other_fields_is_an_error(session: Session) -> None:
    """tests/static/shapes.py also refuses it."""
    run(
        session,
        """create or replace procedure too_few is
            type t_pair is record (a number, b number);
            type t_pairs is table of t_pair index by pls_integer;
            v_pairs t_pairs;
            cursor singles is select 1 as a from dual;
        begin
            open singles;
            fetch singles bulk collect into v_pairs limit 5;
            close singles;
        end;""",
    )
    assert rows(session, "select e.line from user_errors e where e.name = 'TOO_FEW'")


def test_subquery_beside_an_aggregate_is_an_error(session: Session) -> None:
    """tests/static/shapes.py also refuses it."""
    with pytest.raises(oracledb.DatabaseError) as caught:
        rows(session, "select max(d.dummy), (select max(e.dummy) from dual e) from dual d")
    assert number_of(caught.value) == NO_GROUP_FUNCTION


def test_statistics_of_an_index_organized_table_are_set(session: Session) -> None:
    run(
        session,
        "create table held (a number, constraint held_pk primary key (a)) organization index",
    )
    run(
        session,
        """
        begin
            dbms_stats.set_table_stats(
                ownname => dbms_assert.enquote_name(
                    sys_context('userenv', 'current_schema'), false
                ),
                tabname => 'HELD', numrows => 1000, numblks => 10, avgrlen => 30,
                no_invalidate => false, force => true
            );
            dbms_stats.lock_table_stats(ownname => user, tabname => 'HELD');
        end;
        """,
    )
    query = "select s.num_rows, s.stattype_locked from user_tab_statistics s"
    assert rows(session, query) == [(1000, "ALL")]


def test_savepoint_alone_is_no_transaction_to_the_driver(session: Session) -> None:
    session.autocommit = False
    run(session, "begin savepoint rowq_call; end;")
    assert not session.transaction_in_progress


def test_locking_cursor_skips_a_row_deleted_since_its_open(
    server: OracleServer, empty_database: str, session: Session
) -> None:
    """No code depends on it: rowq checks that its delete has found the row."""
    run(
        session,
        "create table held (a number, constraint held_pk primary key (a)) organization index",
    )
    run(session, "insert into held select level from dual connect by level <= 3")
    session.autocommit = False
    opened = """
        begin
            open :found for select h.a from held h order by h.a for update skip locked;
        end;
        """
    with (
        closing(server.connect(empty_database)) as other,
        closing(session.cursor()) as cursor,
        closing(session.cursor()) as found,
    ):
        found.arraysize = found.prefetchrows = 1
        cursor.execute(opened, {"found": found})
        run(other, "delete from held where a = 2")
        assert found.fetchall() == [(1,), (3,)]
    session.rollback()


@pytest.mark.pitfall("oracle 45")
def test_rollback_to_savepoint_does_not_wake_waiting_sessions(
    server: OracleServer, empty_database: str, session: Session
) -> None:
    """internal_can_send returns a row to new sessions, not to those that already wait."""
    run(session, "create table held (a number)")
    run(session, "insert into held select level from dual connect by level <= 2")
    session.autocommit = False
    with ExitStack() as stack, ThreadPoolExecutor(1) as thread:
        waiter, late = (
            stack.enter_context(closing(server.connect(empty_database))) for _ in range(2)
        )
        late.call_timeout = 5000
        run(session, "savepoint before_it")
        run(session, "update held set a = 1 where a = 1")
        waiting = thread.submit(run, waiter, "update held set a = 1 where a = 1")
        wait_until_blocked(server, server.session_id(waiter))
        run(session, "update held set a = 2 where a = 2")
        run(session, "rollback to savepoint before_it")
        run(late, "update held set a = 2 where a = 2")
        assert server.session_id(session) in server.waiting_sessions()[server.session_id(waiter)]
        session.rollback()
        waiting.result(20)


@pytest.mark.pitfall("oracle 44")
def test_create_table_allocates_a_segment_or_fails(server: OracleServer) -> None:
    url = server.make_account()
    try:
        grant(server, url, "create table")
        with closing(server.connect(url)) as session:
            with pytest.raises(oracledb.DatabaseError) as caught:
                run(session, "create table held (a number) segment creation immediate")
            assert number_of(caught.value) == NO_SPACE
            with pytest.raises(oracledb.DatabaseError) as caught:
                run(session, "create table held (a number primary key) organization index")
            assert number_of(caught.value) == NO_SPACE
    finally:
        server.drop_database(url)


@pytest.mark.pitfall("oracle 47")
def test_owner_with_a_lower_case_name_can_install(server: OracleServer) -> None:
    name, password = f"rowq_test_{uuid.uuid4().hex[:12]}", f"Aa1_{uuid.uuid4().hex[:20]}"
    other = server.fresh_database()
    url = as_account(other, f"%22{name}%22", password)
    ((space,),) = server.query(
        "select d.property_value from database_properties d"
        " where d.property_name = 'DEFAULT_PERMANENT_TABLESPACE'"
    )
    server.execute(f'create user "{name}" identified by "{password}" quota unlimited on "{space}"')
    try:
        server.execute(f'grant {", ".join(RIGHTS)} to "{name}"')
        migrate.migrate(url)
        with closing(open_session(url, autocommit=True)) as session:
            locked = "select count(*) from user_tab_statistics s where s.stattype_locked = 'ALL'"
            assert rows(session, locked) == [(17,)]
    finally:
        server.execute(f'drop user "{name}" cascade')
        server.drop_database(other)


@pytest.mark.pitfall("oracle 47")
def test_root_of_a_container_database_is_refused(server: OracleServer) -> None:
    """Run only the statements before the first change."""
    text = release_for("oracle").text("preflight.sql")
    schema, refusal = units(text)
    try:
        root = server.open_root()
    except CannotConnect as error:
        pytest.skip(f"no session in the root: {error}; to run it: an account such as SYSTEM")
    with closing(root):
        run(root, schema)
        with pytest.raises(oracledb.DatabaseError, match=r"CDB\$ROOT") as caught:
            run(root, refusal)
    assert number_of(caught.value) == REFUSED
