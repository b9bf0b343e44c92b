"""What an error of the server means to whoever migrates."""

import re

import oracledb

from rowq.tools.migrate.errors import BY_NUMBER, MigrationError, MissingPrivilege
from rowq.tools.migrate.refusals import tables_in_use

_FAULT = re.compile(r"RQ8\d\d \w+[^\n]*")
_LACKS_PRIVILEGE = {1031, 1950, 41900}
_BUSY = {54, 60, 4021, 30006}
_REMEDIES = {
    "RQ801": "rowq needs Oracle Database 19c or newer.",
    "RQ802": "It was left alone. Look who made it, or give rowq another account.",
    "RQ803": "Connect as the account that owns rowq, without owner= in the URL.",
}
_GRANT = "A DBA can grant it; a role does not help, as rowq's own code runs without roles."


def refusal(error: oracledb.DatabaseError) -> MigrationError | None:
    """Return the refusal that an error of a migration is; None for any other error."""
    number, text = error.args[0].code, error.args[0].message
    if fault := _FAULT.search(text):
        name = fault.group()[:5]
        remedy = _GRANT if "grant execute" in fault.group() else _REMEDIES.get(name)
        return BY_NUMBER[name](fault.group(), remedy)
    if number in _LACKS_PRIVILEGE:
        return MissingPrivilege(
            f"{MissingPrivilege.number} missing_privilege: {text}",
            "The owner needs create session, table, sequence, type and procedure, and a quota.",
        )
    if number in _BUSY:
        return tables_in_use(", or another migration has not ended")
    return None
