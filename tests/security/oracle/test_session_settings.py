"""Each routine does and answers the same whatever the caller sets in its session.

The table holds the manual's session parameters that can affect a statement: NLS, optimizer,
cursors, commits, parallel execution, resources. Parameters of creation (plsql_*, plscope_settings,
nls_length_semantics, deferred_segment_creation, default_collation), tracing or standbys cannot
affect a compiled package. sql/oracle/README.md describes serializable transactions. A parameter
that this release lacks is a skip.
"""

from collections.abc import Callable

import oracledb
import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, counts, enqueue
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

UNKNOWN = {2248, 2065, 2096, 2097, 439, 922}
"""Invalid option, not modifiable, unknown value, option not licensed."""

SETTINGS = {
    "decimal comma": "set nls_numeric_characters = ', '",
    "linguistic, binary_ai": "set nls_comp = linguistic nls_sort = binary_ai",
    "linguistic, xturkish": "set nls_comp = linguistic nls_sort = xturkish",
    "ansi comparison": "set nls_comp = ansi nls_sort = ebcdic",
    "Turkish": "set nls_language = turkish nls_territory = turkey",
    "Arabic": "set nls_language = arabic nls_territory = egypt",
    "dates": "set nls_date_format = 'RR.DD' nls_timestamp_format = 'RR.DD'",
    "dates with zones": "set nls_timestamp_tz_format = 'RR.DD' nls_date_language = french",
    "Buddhist calendar": "set nls_calendar = 'Thai Buddha'",
    "Hijrah calendar": "set nls_calendar = 'Arabic Hijrah'",
    "currency": "set nls_currency = '1' nls_iso_currency = japan nls_dual_currency = '2'",
    "lost characters are errors": "set nls_nchar_conv_excp = true",
    "lengths in bytes": "set nls_length_semantics = byte",
    "time zone": "set time_zone = '+05:45'",
    "summer time": "set time_zone = 'Europe/Berlin' error_on_overlap_time = true",
    "shared cursors": "set cursor_sharing = force",
    "first rows": "set optimizer_mode = first_rows_1",
    "old optimizer": "set optimizer_features_enable = '8.0.0'",
    "no hints": "set optimizer_ignore_hints = true",
    "indexes cost much": "set optimizer_index_cost_adj = 10000 optimizer_index_caching = 0",
    "invisible indexes": "set optimizer_use_invisible_indexes = true",
    "dynamic sampling": "set optimizer_dynamic_sampling = 11",
    "no rewriting": "set query_rewrite_enabled = false star_transformation_enabled = true",
    "cached results": "set result_cache_mode = force",
    "approximate": "set approx_for_aggregation = true approx_for_count_distinct = true",
    "full statistics": "set statistics_level = all",
    "parallel queries": "force parallel query parallel 4",
    "parallel changes": "force parallel dml parallel 4",
    "automatic parallel": "set parallel_degree_policy = auto parallel_min_time_threshold = 0",
    "commit without waiting": "set commit_wait = nowait commit_logging = batch",
    "waits of days": "set ddl_lock_timeout = 1000000",
    "temporary undo": "set temp_undo_enabled = true",
    "no cursors kept": "set session_cached_cursors = 0",
    "old PL/SQL": "set plsql_v2_compatibility = true",
    "PL/SQL interpreted": "set plsql_optimize_level = 0 plsql_code_type = interpreted",
    "positions in group by": "set group_by_position_enabled = true",
    "everything visible": "set row archival visibility = all",
}


@pytest.mark.promise("P15", "P20")
@pytest.mark.parametrize("setting", SETTINGS)
def test_session_settings_do_not_change_a_messages_life(
    connect: Connect, lives_as_in_a_clean_session: Callable[[Connection], None], setting: str
) -> None:
    session = connect()
    dialect = dialect_of(session)
    try:
        dialect.execute(session, f"alter session {SETTINGS[setting]}")
    except oracledb.DatabaseError as error:
        if error.args[0].code not in UNKNOWN:
            raise
        pytest.skip(f"alter session {SETTINGS[setting]}: {error}; to run it: another version")
    lives_as_in_a_clean_session(session)


@pytest.mark.promise("P02", "P15")
def test_session_that_forbids_commit_cannot_wait(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    [sent] = enqueue(connection, queue_name, "x")
    session = connect(autocommit=False)
    dialect = dialect_of(session)
    dialect.execute(session, "alter session disable commit in procedure")
    with pytest.raises(oracledb.DatabaseError, match="ORA-00034"):
        call(session, "dequeue_wait", queue_name=queue_name, wait_seconds=0)
    session.rollback()
    assert counts(connection, queue_name) == (1, 0, 0, 0)
    rows = call(connection, "dequeue_fast", queue_name=queue_name)
    assert [row.message_id for row in rows] == [sent]
