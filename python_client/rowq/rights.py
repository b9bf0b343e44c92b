"""Says which role an account lacks, as a note on the driver's error."""

from typing import Any

from rowq.contract import load_contract
from rowq.engines.base import Engine

_NEEDS = "needs role "


def explain_denial(engine: Engine, connection: Any, routine: str, error: Exception) -> None:
    """Add a note to an error that says that the account may not call the routine."""
    if not engine.is_denied(error):
        return
    roles = [f"rowq_{role}" for role in load_contract().routine(routine).roles]
    # Who may do everything may do this, too; the narrowest role is the one to ask for.
    roles.sort(key="rowq_admin".__eq__)
    grant = engine.grant(connection, roles[0], error)
    error.add_note(f"{_NEEDS}{' or '.join(roles)}: a DBA can run {grant}")


def remedy_of(error: BaseException | None) -> str:
    """Return the note of an error or of what caused it, an empty text where there is none."""
    while error is not None:
        for note in getattr(error, "__notes__", ()):
            if note.startswith(_NEEDS):
                return str(note)
        error = error.__cause__
    return ""
