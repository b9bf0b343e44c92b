"""Every generated file that is made from the contract, the SQL, the tests and the client."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sql.generate import citus, comments, grants, install, readme, typescript
from sql.generate.contract import contract_md
from sql.generate.parts import Parts, fresh
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
    "sql/PROMISES.md": {"promises": readme.promises},
    "sql/postgres/citus/README.md": {"answers": citus.answers},
    "sql/postgres/citus/aside.sql": {"names": citus.names_of_routines},
    "sql/postgres/citus/behind.sql": {"moves": citus.moves},
    "sql/postgres/citus/carry.sql": {"carriers": citus.carriers},
    "sql/postgres/citus/check.sql": {
        "names": citus.names_of_routines,
        "routines": citus.names_of_routines,
    },
    "sql/postgres/citus/distribute.sql": {"names": citus.names_of_distributed},
    "sql/postgres/citus/rights.sql": {
        "routines": citus.names_of_routines,
        "carriers": citus.names_of_carriers,
    },
    "sql/postgres/citus/route.sql": {"wrappers": citus.wrappers},
    "sql/postgres/citus/uncarry.sql": {"carriers": citus.names_of_carriers},
    "sql/RIGHTS.md": {"rights": readme.rights, "attacks": readme.attacks},
    **{
        f"sql/{engine.name}/install.sql": {
            "routines": partial(install.routines, engine),
            # Oracle's packages are assembled from the sources, which SQL*Plus cannot do.
            **({} if engine.name == "oracle" else install.parts_of_bookkeeping(engine)),
        }
        for engine in _ENGINES
    },
    **{f"sql/{engine.name}/grants.sql": _GRANTS[engine.name] for engine in _ENGINES},
    "sql/oracle/comments.sql": {"comments": comments.on_oracle},
    "sql/postgres/comments.sql": {"comments": comments.on_postgres},
    "sql/sqlserver/comments.sql": {"comments": comments.on_sqlserver},
}
FILES: dict[str, Callable[[], str]] = {
    "sql/CONTRACT.md": contract_md,
    "docs/examples/typescript/rowq.ts": typescript.types,
    "python_client/rowq/session.py": partial(synchronous, "async_session.py"),
    "python_client/rowq/queue.py": partial(synchronous, "async_queue.py"),
    "python_client/rowq/striped.py": partial(synchronous, "async_striped.py"),
    **{name: partial(fresh, ROOT / name, parts) for name, parts in _PARTS.items()},
    **{
        path.relative_to(ROOT).as_posix(): partial(comments.commented, path)
        for path in comments.files_of_mysql()
    },
}
"""Path from the root of the repository, and what returns the text that the file should have."""


def is_fresh(name: str) -> bool:
    """Return whether a file has the text that it should have."""
    return _text_now(name) == FILES[name]()


def stale_files() -> list[str]:
    """Return the files that have not the text that they should have."""
    return [name for name in FILES if not is_fresh(name)]


def write_all() -> None:
    """Write every file that is not as it should be, and print its name."""
    for name, make in FILES.items():
        text = make()
        if _text_now(name) != text:
            (ROOT / name).write_text(text, encoding="utf-8", newline="\n")
            print(f"{name}: written")


def _text_now(name: str) -> str | None:
    file = ROOT / name
    return file.read_text(encoding="utf-8") if file.exists() else None
