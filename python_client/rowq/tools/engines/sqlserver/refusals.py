"""What an error of the server means to whoever migrates."""

import pyodbc

from rowq.engines.sqlserver.errors import fault_of, numbers_of, text_of, words_of
from rowq.tools.migrate.errors import BY_NUMBER, MigrationError, MissingPrivilege, SchemaInUse
from rowq.tools.migrate.refusals import tables_in_use

_LACKS_PRIVILEGE = {229, 230, 262, 297, 300, 916, 2760, 3701, 15151, 15247}
_BUSY = {1205, 1222}
_IN_USE = {3726, 3729, 3732, 15136, 15138}


def refusal(error: pyodbc.Error) -> MigrationError | None:
    """Return the refusal that an error of a migration is; None for any other error."""
    if found := fault_of(error):
        message, _, remedy = found.partition("\n")
        return BY_NUMBER[found[:5]](message, remedy or None)
    numbers, text = numbers_of(error), words_of(text_of(error))
    if numbers & _BUSY:
        return tables_in_use()
    if numbers & _IN_USE:
        return SchemaInUse(f"{SchemaInUse.number} schema_in_use: {text}")
    if numbers & _LACKS_PRIVILEGE:
        return MissingPrivilege(f"{MissingPrivilege.number} missing_privilege: {text}")
    return None
