"""Built-in functions, variables and procedures of SQL Server that rowq may use.

Other names are refused, because Microsoft's model accepts every unknown function.
"""

MANY = 254

_ARGUMENTS: dict[tuple[int, int], str] = {
    (0, 0): """current_transaction_id dense_rank error_line error_message error_number
        error_procedure error_severity error_state getutcdate host_name newid original_login rank
        row_number rowcount_big scope_identity sysdatetimeoffset sysutcdatetime
        xact_state""",
    (0, 1): """db_id db_name rand suser_id suser_name suser_sname user_id user_name""",
    (1, 1): """abs ascii avg ceiling char count count_big database_principal_id datalength exp
        floor ident_current is_member isjson isnumeric len log10 lower ltrim max min nchar reverse
        rtrim schema_id schema_name serverproperty session_context sign space sqrt square sum
        type_id unicode upper""",
    (1, 2): """is_rolemember log object_id object_name object_schema_name quotename trim""",
    (1, 3): """lag lead""",
    (2, 2): """col_length databasepropertyex datename datepart hashbytes isnull json_query
        json_value left objectproperty objectpropertyex patindex power replicate right string_agg
        string_escape switchoffset todatetimeoffset""",
    (2, 3): """charindex columnproperty indexproperty round""",
    (3, 3): """applock_mode datefromparts dateadd datediff datediff_big json_modify replace
        substring translate""",
    (3, 5): "has_perms_by_name",
    (4, 4): """applock_test stuff""",
    (8, 8): "datetime2fromparts",
    (1, MANY): "checksum binary_checksum",
    (2, MANY): "choose concat formatmessage",
    (3, MANY): "concat_ws",
}

FUNCTIONS = {name: count for count, names in _ARGUMENTS.items() for name in names.split()}
"""The minimum and maximum number of arguments of each function."""

DATE_FUNCTIONS = frozenset({"dateadd", "datediff", "datediff_big", "datepart", "datename"})
DATE_PARTS = frozenset(
    {
        *("year", "quarter", "month", "dayofyear", "day", "week", "weekday", "hour", "minute"),
        *("second", "millisecond", "microsecond", "nanosecond", "iso_week", "tzoffset"),
    }
)
"""Full names only: the abbreviations are misleading."""

GLOBALS = frozenset(
    {
        *("@@error", "@@rowcount", "@@trancount", "@@version", "@@spid", "@@options"),
        *("@@fetch_status", "@@lock_timeout", "@@procid", "@@servername", "@@datefirst"),
        *("@@nestlevel", "@@textsize", "@@identity"),
    }
)

PROCEDURES: dict[str, frozenset[str]] = {
    "sp_getapplock": frozenset(
        {"@resource", "@lockmode", "@lockowner", "@locktimeout", "@dbprincipal"}
    ),
    "sp_releaseapplock": frozenset({"@resource", "@lockowner", "@dbprincipal"}),
    "sp_executesql": frozenset(),
    "sp_sequence_get_range": frozenset({"@sequence_name", "@range_size", "@range_first_value"}),
    "sp_addextendedproperty": frozenset(
        {
            *("@name", "@value", "@level0type", "@level0name", "@level1type", "@level1name"),
            *("@level2type", "@level2name"),
        }
    ),
    "sp_updateextendedproperty": frozenset(
        {
            *("@name", "@value", "@level0type", "@level0name", "@level1type", "@level1name"),
            *("@level2type", "@level2name"),
        }
    ),
    "sp_set_session_context": frozenset({"@key", "@value", "@read_only"}),
    "sp_add_job": frozenset({"@job_name", "@enabled", "@description", "@category_name"}),
    "sp_add_jobserver": frozenset({"@job_name", "@server_name"}),
    "sp_delete_job": frozenset({"@job_name", "@delete_unused_schedule"}),
    "sp_add_jobstep": frozenset(
        {
            *("@job_name", "@step_name", "@subsystem", "@command", "@database_name", "@step_id"),
            *("@retry_attempts", "@retry_interval", "@on_success_action", "@on_fail_action"),
        }
    ),
    "sp_add_jobschedule": frozenset(
        {
            *("@job_name", "@name", "@enabled", "@freq_type", "@freq_interval"),
            *("@freq_subday_type", "@freq_subday_interval", "@active_start_time"),
            *("@freq_recurrence_factor",),
        }
    ),
}
"""System procedures and their parameters; empty for those with any parameters."""
