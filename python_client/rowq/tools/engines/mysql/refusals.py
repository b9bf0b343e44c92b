"""What an error of the server means to whoever migrates or looks."""

import re

import pymysql

from rowq.tools.engines.mysql.owner import LACKS_PRIVILEGE
from rowq.tools.migrate.errors import BY_NUMBER, MigrationError, MissingPrivilege
from rowq.tools.migrate.refusals import tables_in_use

_FAULT = re.compile(r"RQ8\d\d \w+(?:: [\w ]+)?")
_BUSY = {1205, 1213}
_REMEDIES = {
    "RQ801": "rowq needs MariaDB 10.6 or MySQL 8.0.21, or newer.",
    "RQ803": "Let a DBA run: grant all privileges on rowq.* to this account with grant option;",
    "RQ802": "Nothing was changed. Where the database is rowq's, revoke what others have there, or"
    " let the account migrate whose it is, or one with rights on rowq.* only.",
    "RQ806": "Another migration has not ended for 60 seconds. Try again.",
}
_REMEDY_FOR_OWNER = "Nothing was changed. Let a DBA run: drop user 'rowq_owner'@'localhost';"


def refusal(error: pymysql.Error) -> MigrationError | None:
    """Return the refusal that an error is; None for any other error."""
    number, text = (*error.args, "", "")[:2]
    if fault := _FAULT.search(str(text)):
        code = fault.group()[:5]
        is_owner = ": rowq_owner " in fault.group()
        remedy = _REMEDY_FOR_OWNER if is_owner else _REMEDIES.get(code)
        return BY_NUMBER[code](fault.group(), remedy)
    if number in LACKS_PRIVILEGE:
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    if number in _BUSY:
        return tables_in_use()
    return None
