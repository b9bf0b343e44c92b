"""All files generated from the contract, the SQL, the tests and the client."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs import commands
from sql.generate import (
    comments,
    copies,
    grants,
    install,
    layers,
    lists,
    options,
    readme,
    signatures,
    typescript,
)
from sql.generate.contract import contract_md
from sql.generate.markers import Parts, fresh
from sql.generate.sync import synchronous

ROOT = Path(__file__).resolve().parents[2]

_ENGINES = sorted(path.parent for path in (ROOT / "sql").glob("*/install.sql"))
_GRANTS: dict[str, Parts] = {
    "mysql": {"rights": grants.on_mysql},
    "oracle": {"rights": grants.on_oracle, "kept rights": grants.kept_on_oracle},
    "postgres": {"rights": grants.on_postgres},
    "sqlserver": {"rights": grants.on_sqlserver},
}
_PARTS: dict[str, Parts] = {
    "README.md": {"numbers": readme.numbers},
    "docs/command.md": commands.PARTS,
    "docs/examples/node/mysql.js": {"parameters": options.parameters_in_javascript},
    "python_client/rowq/messages.py": {"options": options.fields, "details": options.details},
    "python_client/rowq/options.py": {"options": options.classes},
    "sql/PROMISES.md": {"promises": readme.promises},
    "sql/RIGHTS.md": {"rights": readme.rights, "attacks": readme.attacks},
    **{
        f"sql/{engine.name}/install.sql": {
            "routines": partial(install.routines, engine),
            # SQL*Plus cannot assemble Oracle's packages.
            **({} if engine.name == "oracle" else install.parts_of_bookkeeping(engine)),
        }
        for engine in _ENGINES
    },
    **{f"sql/{engine.name}/grants.sql": _GRANTS[engine.name] for engine in _ENGINES},
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


_COMPLETED = lists.files()


def _helpers(path: Path) -> str:
    return _COMPLETED[path](path.read_text(encoding="utf-8"))


def _routine(path: Path) -> str:
    engine, name = path.parents[1].name, path.stem
    text = signatures.signed(engine, name, path.read_text(encoding="utf-8"))
    text = copies.copied(path, _COMPLETED.get(path, str)(text))
    return comments.commented_routine(path.parents[1], name, text) if engine == "mysql" else text


TWINS: dict[str, Callable[[], str]] = {
    "python_client/rowq/session.py": partial(synchronous, "async_session.py"),
    "python_client/rowq/queue.py": partial(synchronous, "async_queue.py"),
    "python_client/rowq/engines/postgres/waiting.py": partial(
        synchronous, "engines/postgres/async_waiting.py"
    ),
    "python_client/rowq/contrib/striped.py": partial(synchronous, "contrib/async_striped.py"),
}
"""The files that ruff formats."""
FILES: dict[str, Callable[[], str]] = {
    "docs/layers.dot": layers.layers_dot,
    "sql/CONTRACT.md": contract_md,
    **TWINS,
    **{name: partial(fresh, ROOT / name, parts) for name, parts in _PARTS.items()},
    **{_name(path): partial(_helpers, path) for path in _COMPLETED},
    **{_name(path): partial(_routine, path) for path in signatures.files()},
    **{_name(path): partial(signatures.overload, path) for path in signatures.overloads()},
    "sql/oracle/helpers/put.sql": partial(
        signatures.put_on_oracle, ROOT / "sql/oracle/helpers/put.sql"
    ),
    "sql/mysql/tables.sql": comments.commented_tables,
}
"""Functions that return the text of each file, by path."""
BUILT: dict[str, Callable[[], str]] = {"docs/examples/typescript/rowq.ts": typescript.types}
"""The same for files that are not committed."""


def is_fresh(name: str) -> bool:
    """Return whether a file is current."""
    return _text_now(name) == FILES[name]()


def stale_files() -> list[str]:
    """Return the files that are not current."""
    return [name for name in FILES if not is_fresh(name)]


def write_all() -> None:
    """Write every file that is not current, and print its name."""
    for name, make in {**FILES, **BUILT}.items():
        text = make()
        if _text_now(name) != text:
            (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
            print(f"{name}: written")


def _text_now(name: str) -> str | None:
    file = ROOT / name
    return file.read_text(encoding="utf-8") if file.exists() else None
