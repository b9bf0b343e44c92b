"""Missing roles, as a note on the driver's error."""

from typing import Any

from rowq.contract import load_contract
from rowq.engines.base import Engine

_NEEDS = "needs role "


def explain_denial(engine: Engine, connection: Any, routine: str, error: Exception) -> None:
    """Add the missing role to an error if the account may not call the routine."""
    if not engine.is_denied(error):
        return
    roles = [f"rowq_{role}" for role in load_contract().routine(routine).roles]
    # rowq_admin may call everything: suggest a narrower role first.
    roles.sort(key="rowq_admin".__eq__)
    grant = engine.grant(connection, roles[0], error)
    error.add_note(f"{_NEEDS}{' or '.join(roles)}: a DBA can run {grant}")


def remedy_of(error: BaseException | None) -> str:
    """Return the note of an error or of its cause, or an empty string."""
    while error is not None:
        for note in getattr(error, "__notes__", ()):
            if note.startswith(_NEEDS):
                return str(note)
        error = error.__cause__
    return ""
