"""web: a page for people, in a browser."""

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
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free one.")] = 8700,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show, and let nobody change anything.")
    ] = False,
    base_path: Annotated[
        str, typer.Option(metavar="/PATH", help="Below which path a proxy asks for it.")
    ] = "",
    title: Annotated[str, typer.Option(help="Stands at the head of each page.")] = "rowq",
    hide_errors: Annotated[
        bool, typer.Option("--hide-errors", help="Show an error's type alone.")
    ] = False,
    hide_bodies: Annotated[
        bool, typer.Option("--hide-bodies", help="Show no body, header, key or result.")
    ] = False,
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Users who may log in; --set-password writes it."),
    ] = None,
    set_password: Annotated[
        str | None,
        typer.Option(
            metavar="USER",
            help="Write a user's password, a line of standard input, to --password-file, and end.",
        ),
    ] = None,
    trust_proxy_user: Annotated[
        str | None,
        typer.Option(metavar="HEADER", help="Header in which a proxy names who has logged in."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Where that proxy asks from, this machine unless given; may be repeated.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name by which browsers call it; may be repeated."),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two looks while somebody looks.")
    ] = 2.0,
) -> None:
    """Show the queues in a browser, until Ctrl-C or SIGTERM.

    What it shows and does is what the database's account may: rowq_monitor looks and sees no
    message's body, rowq_admin acts. Without a login it listens on this machine alone, where
    everybody who has an account may then use it.
    """
    if set_password is not None:
        _set_password(password_file, set_password)
        return
    authorize, is_open = _login(password_file, trust_proxy_user, proxy)
    if is_open and not _is_local(host):
        raise typer.BadParameter(
            f"beside this machine ({host}) it needs a login: --password-file FILE, or"
            " --trust-proxy-user HEADER behind a proxy that asks"
        )
    if trust_proxy_user is not None and not proxy and not _is_local(host):
        raise typer.BadParameter(
            f"beside this machine ({host}) anybody could send that header: --proxy ADDRESS says"
            " which address the proxy asks from"
        )
    if not _BASE_PATH.fullmatch(base_path):
        raise typer.BadParameter(f"--base-path is a path such as /rowq, got {base_path!r}")
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
    """Return what lets users in, and whether that is everybody."""
    from rowq.web.passwords import LOOPBACK, Passwords, ProxyUser

    if password_file is not None and header is not None:
        raise typer.BadParameter("give either --password-file or --trust-proxy-user")
    if proxies and header is None:
        raise typer.BadParameter("--proxy goes with --trust-proxy-user")
    if password_file is not None:
        return Passwords(password_file), False
    if header is not None:
        try:
            return ProxyUser(header, proxies or LOOPBACK), False
        except ValueError as error:
            raise typer.BadParameter(f"--proxy is an address or a network: {error}") from None
    return lambda _request: "act", True


def _set_password(file: Path | None, user: str) -> None:
    """Write a user's password into the file, which only its owner may read."""
    from rowq.web.passwords import write_password

    if file is None:
        raise typer.BadParameter("--set-password goes with --password-file FILE")
    if sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise BadInput(
            "an empty password keeps nobody out: type one, or give it as a line of input"
        )
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
    """Serve the page until a signal ends it; raises CommandFailed when the port is taken."""
    from rowq.web import create_app
    from rowq.web.serving import serving

    log_to_stderr()
    logging.getLogger("rowq.web").setLevel(logging.INFO)
    page = create_app(urls, authorize=authorize, **options)
    with ExitStack() as stack:
        try:
            served = stack.enter_context(serving(page, host, port, base_path))
        except OSError as error:
            words = f"the page cannot be served at {host}:{port}: {error.strerror}"
            raise CommandFailed(ExitCode.FAILED, words) from error
        signals = stack.enter_context(StopSignals())
        say(f"{served.address} shows the queues; Ctrl-C ends", err=True)
        while not signals.asked and served.is_running():
            time.sleep(_TICK_SECONDS)
