"""doctor: examines a database and the rowq that is installed there."""

from collections.abc import Mapping
from typing import Any

import typer

from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson, Url
from rowq.tools.console.output import print_rows
from rowq.tools.doctor import Check, Status, examine

_STYLES = {Status.FAILED: "bold red", Status.WARNING: "yellow", Status.UNKNOWN: "dim"}


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="The installation")(doctor)


def doctor(
    url: Url,
    as_json: AsJson = False,
) -> None:
    """Examine server, installation, rights, settings and clock; exits with 4 when a check failed.

    Sends one message through a queue of its own, which is dropped at the end, and changes nothing
    else. A setting that is not as it should be is a warning when rowq works all the same.
    """
    checks: list[Check] = []
    for check in examine(url):
        checks.append(check)
        if as_json:
            print_rows([check], as_json, nothing="")
    if not as_json:
        print_rows(checks, as_json, nothing="", style=_style)
    if any(check.status is Status.FAILED for check in checks):
        raise typer.Exit(ExitCode.INCOMPLETE)


def _style(check: Mapping[str, Any]) -> str | None:
    return _STYLES.get(check["status"])
