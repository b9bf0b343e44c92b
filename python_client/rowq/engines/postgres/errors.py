"""What errors of psycopg and asyncpg mean: SQLSTATEs, and the routines' refusals."""

import re
from typing import Any

from rowq.errors import REFUSALS, InvalidArgument, Refused, WrongTransactionState

_COMMITS_INSIDE_TRANSACTION = "2D000"
_DENIED = "42501"
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*")
CONNECTION_GONE = {"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"}
READ_ONLY = "25006"
UNDONE = {"40001", "40P01"}
SHORTAGE_CLASSES = {"08", "40", "53", "55", "57", "58", "72"}
# libpq says this of a call that it has not begun to send.
NOT_SENT = "another command is already in progress"


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal that an error stands for, or None."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidArgument(f"a text does not fit {error.encoding}: {error.reason}")
    sqlstate = sqlstate_of(error)
    if sqlstate == _COMMITS_INSIDE_TRANSACTION:
        return WrongTransactionState("a routine that commits was called inside a transaction")
    if refused := REFUSALS.get(sqlstate):
        return refused(text_of(error))
    return None


def sqlstate_of(error: Exception) -> str:
    """Return the SQLSTATE of an error, "" where it has none."""
    return getattr(error, "sqlstate", None) or ""


def text_of(error: Any) -> str:
    """Return the server's own words, without hint and position."""
    # asyncpg has on the error itself what psycopg has in its diagnosis.
    words = error.diag.message_primary if hasattr(error, "diag") else error.message
    return words or str(error)


def is_denied(error: Any) -> bool:
    """Whether the caller may not call a routine: an error inside of one has a context."""
    return sqlstate_of(error) == _DENIED and not getattr(error, "diag", error).context


def quoted(name: str) -> str:
    """Return a role's name as it is written in SQL."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def ends_session(error: Any) -> bool:
    """Whether the server said that it ends the session, whatever the reason."""
    return error.diag.severity_nonlocalized in {"FATAL", "PANIC"}
