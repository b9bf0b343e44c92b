"""The command web."""

import ipaddress
import logging
import re
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rowq.tools.console.database import servers_in
from rowq.tools.console.errors import BadInput, CommandFailed
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import Urls
from rowq.tools.console.streams import say
from rowq.tools.terminal import log_to_stderr
from rowq.worker.context import StopSignals

if TYPE_CHECKING:
    from rowq.web.access import Authorize

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_TICK_SECONDS = 0.2
_BASE_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)*")


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Operation")(web)


def web(
    url: Urls,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free port.")] = 8700,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="No changes from the page.")
    ] = False,
    base_path: Annotated[
        str, typer.Option(metavar="/PATH", help="Path under which a proxy serves the page.")
    ] = "",
    title: Annotated[str, typer.Option(help="Title of each page.")] = "rowq",
    hide_errors: Annotated[
        bool, typer.Option("--hide-errors", help="Show only the type of errors.")
    ] = False,
    hide_bodies: Annotated[
        bool, typer.Option("--hide-bodies", help="Hide bodies, headers, keys and results.")
    ] = False,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of users, written by --set-password."),
    ] = None,
    set_password: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            help="Write this user's password, read from standard input, to --password-file; exit.",
        ),
    ] = None,
    trust_proxy_user: Annotated[
        str | None,
        typer.Option(metavar="HEADER", help="Header in which a proxy passes the user's name."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address or network of the proxy. Default: localhost. Repeatable.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name of the page. Repeatable."),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Refresh interval in seconds while a page is open.")
    ] = 2.0,
) -> None:
    """Serve a web page of the queues until Ctrl-C or SIGTERM.

    The database account limits what the page shows and does: rowq_monitor shows everything except
    bodies, rowq_admin also changes it. Without a login it listens on localhost only, and every
    account of this machine can use it.
    """
    if set_password is not None:
        _set_password(password_file, set_password)
        return
    authorize, is_open = _login(password_file, trust_proxy_user, proxy)
    if is_open and not _is_local(host):
        raise typer.BadParameter(
            f"--host {host} requires a login: use --password-file FILE or --trust-proxy-user HEADER"
        )
    if trust_proxy_user is not None and not proxy and not _is_local(host):
        raise typer.BadParameter(
            f"--host {host} with --trust-proxy-user requires --proxy ADDRESS:"
            " otherwise any client could send the header"
        )
    if not _BASE_PATH.fullmatch(base_path):
        raise typer.BadParameter(f"--base-path must be a path such as /rowq, got {base_path!r}")
    _serve(
        servers_in(url),
        authorize,
        host.strip("[]"),
        port,
        base_path,
        {
            "title": title,
            "interval": interval,
            "read_only": read_only,
            "hide_errors": hide_errors,
            "hide_bodies": hide_bodies,
            "allow_hosts": {*_LOCAL_NAMES, host.strip("[]"), *(allow_host or ())},
        },
    )


def _login(
    password_file: Path | None, header: str | None, proxies: list[str] | None
) -> tuple["Authorize", bool]:
    """Return the authorization function, and whether it admits everybody."""
    from rowq.web.passwords import LOOPBACK, Passwords, ProxyUser

    if password_file is not None and header is not None:
        raise typer.BadParameter("--password-file and --trust-proxy-user are mutually exclusive")
    if proxies and header is None:
        raise typer.BadParameter("--proxy requires --trust-proxy-user")
    if password_file is not None:
        return Passwords(password_file), False
    if header is not None:
        try:
            return ProxyUser(header, proxies or LOOPBACK), False
        except ValueError as error:
            raise typer.BadParameter(f"--proxy must be an address or a network: {error}") from None
    return lambda _request: "act", True


def _set_password(file: Path | None, user: str) -> None:
    """Write a user's password to the file, which only its owner can read."""
    from rowq.web.passwords import write_password

    if file is None:
        raise typer.BadParameter("--set-password requires --password-file FILE")
    if sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise BadInput("the password is empty; type it, or pass it as a line of standard input")
    write_password(file, user, password)
    say(f"{file}: {user}")


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _serve(
    urls: str | dict[str, str],
    authorize: "Authorize",
    host: str,
    port: int,
    base_path: str,
    options: dict[str, Any],
) -> None:
    """Serve the page until a signal; raise CommandFailed if the port is in use."""
    from rowq.web import create_app
    from rowq.web.serving import serving

    log_to_stderr()
    logging.getLogger("rowq.web").setLevel(logging.INFO)
    page = create_app(urls, authorize=authorize, **options)
    with ExitStack() as stack:
        try:
            served = stack.enter_context(serving(page, host, port, base_path))
        except OSError as error:
            text = f"cannot serve the page at {host}:{port}: {error.strerror}"
            raise CommandFailed(ExitCode.FAILED, text) from error
        signals = stack.enter_context(StopSignals())
        say(f"serving the queues at {served.address}; Ctrl-C to stop", err=True)
        while not signals.asked and served.is_running():
            time.sleep(_TICK_SECONDS)
