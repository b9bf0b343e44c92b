"""What pyodbc's errors mean: SQLSTATEs, the server's numbers, and the routines' refusals.

pyodbc puts all that a driver says about one failure into one text:
    [42000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]RQ701 queue_not_found: no queue
    is named 'x' (52701) (SQLExecDirectW); [01000] [Microsoft]...[SQL Server]... (3621)
"""

import re

from rowq.errors import Refused, refusal_from_text

# The session or the server ended: killed, shut down, failed over, thrown out of an idle pool.
# FreeTDS's own numbers are cannot connect, read, write, end of file, out of step, dead.
CONNECTION_GONE = frozenset(
    {
        *(596, 6002, 6005, 17142, 17147, 17148, 17188, 17197, 40197, 40613, 40642),
        *(20002, 20004, 20006, 20009, 20017, 20020, 20047),
    }
)
# The database is read-only, or not here, as while its role changes.
WRONG_SERVER = frozenset({976, 978, 979, 982, 983, 3906})
# A lock was not granted in time, or a scan lost its place; locks, memory, disk or log are used up;
# Azure is busy; a database comes up or changes its state. 650, 3951 and 3952 are not among them
# (READPAST under serializable, snapshot where it cannot be): the isolation level of the caller's
# transaction is wrong, and stays so however often it is tried.
SHORTAGES = frozenset(
    {
        *(1222, 601),
        *(1204, 1221, 701, 802, 845, 1101, 1105, 8628, 8645, 8651, 8657, 9002, 40544),
        *(10922, 10928, 10929, 10930, 10936, 40143, 40501, 40540),
        *(40549, 40550, 40551, 40552, 40553),
        *(49918, 49919, 49920),
        *(921, 952, 3908, 4221, 18401, 41301, 41302, 41305, 41325, 41839),
    }
)

DENIED = 229
# These are a deadlock, an update conflict of a snapshot, and conflicts of tables in memory.
UNDONE = frozenset({1205, 3960, 3961, 41301, 41302, 41305, 41325})

# SQLSTATE and the names of those who passed them on come before the server's words.
_ORIGIN = r"(?:^|; )(?:\[[^\]]*\] ?)+"
_END = r"(?= \(SQL\w+\)|; \[\w{5}\] |$)"
_FAULT = re.compile(rf"{_ORIGIN}(RQ(\d{{3}}) \w+: .*?) \(52\2\){_END}", re.DOTALL)
_WORDS = re.compile(rf"^(?:\[[^\]]*\] ?)*(.*?)(?: \(\d+\))?{_END}", re.DOTALL)
_NUMBER = re.compile(rf" \((\d+)\){_END}")
_STATE = re.compile(r"(?:^|; )\[(\w{5})\] ")


def text_of(error: Exception) -> str:
    """Return what an error says, without the SQLSTATE that pyodbc puts before it."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def states_of(error: Exception) -> set[str]:
    """Return the SQLSTATEs of all that went wrong."""
    first = {str(error.args[0])} if len(error.args) > 1 else set()
    return first | set(_STATE.findall(text_of(error)))


def numbers_of(error: Exception) -> set[int]:
    """Return the server's numbers, or the driver's own, of all that went wrong."""
    return {int(number) for number in _NUMBER.findall(text_of(error))}


def fault_of(error: Exception) -> str | None:
    """Return what rowq's own code on the server said, such as RQ701 queue_not_found: ...; or None.

    Only words that the server sent under the number that belongs to them: RQ701 under 52701.
    """
    found = _FAULT.search(text_of(error))
    return found[1] if found else None


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal of a routine that an error of the driver stands for, or None."""
    fault = fault_of(error)
    return refusal_from_text(fault) if fault else None


def words_of(text: str) -> str:
    """Return the server's own words of what a driver passed on, the first ones of several."""
    found = _WORDS.match(text)
    return found[1] if found else text
