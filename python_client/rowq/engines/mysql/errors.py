"""What PyMySQL's errors mean: the server's numbers and the driver's own."""

import re

from rowq.engines.mysql.driver import load_driver
from rowq.engines.sockets import is_of_the_network

# The server's numbers of a shutdown, killed sessions, network errors and an idle session thrown
# out; and the client's: cannot connect, has gone away, lost during query, lost.
CONNECTION_GONE = {
    *(1053, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 3169, 4031),
    *(2002, 2003, 2006, 2013, 2055),
}
ROUTINE_DENIED = 1370
_ACCOUNT = re.compile(r"'[^']*'@'[^']*'")
# The transaction, the server or InnoDB is read-only; a node is out of its cluster; a proxy found no
# server.
WRONG_SERVER = {1792, 1836, 1874, 1047, 9001}
# An option keeps the server from it; the error's text names the option.
PREVENTED_BY_OPTION, READ_ONLY = 1290, re.compile("read.only", re.IGNORECASE)
# These are a deadlock, a conflict of snapshots, and a commit that a cluster refused.
UNDONE = {1213, 1020, 3101}
# A lock was not granted in time; connections, transactions, memory, locks or disk are used up; the
# call was interrupted; a table is being altered.
SHORTAGES = {
    *(1205, 3572),
    *(1040, 1203, 1226, 1637, 1021, 1037, 1038, 1041, 1114, 1135, 1206),
    *(1317, 1969, 3024),
    *(1412, 1615),
}


def number_of(error: Exception) -> int | None:
    """Return the number of a driver's error; some of the driver's own have none."""
    if not isinstance(error, load_driver().Error):
        return None
    return error.args[0] if error.args and isinstance(error.args[0], int) else None


def text_of(error: Exception) -> str:
    """Return what an error says, without its number."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def account_of(error: Exception) -> str | None:
    """Return the account that an error names, such as 'web'@'%', or None."""
    found = _ACCOUNT.search(text_of(error))
    return found.group() if found else None


def interruption_of(error: BaseException, handled: BaseException | None) -> OSError | None:
    """Return what a signal's handler raised, where the driver took it for an error of the network.

    The driver raises its own error while it handles that one; `handled` is what the caller was
    handling before.
    """
    cause = error if isinstance(error, OSError) else error.__context__
    if cause is handled or not isinstance(cause, OSError) or is_of_the_network(cause):
        return None
    return cause
