"""Finds the SQL files: inside the package in a wheel, at the repository root in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def sql_directory() -> Path:
    """Return the directory of contract.toml and of one directory of SQL per engine."""
    return _find("sql", "contract.toml")


def migrations_directory() -> Path:
    """Return the directory that holds one directory of migrations per engine."""
    return _find("migrations", "")


def _find(directory: str, landmark: str) -> Path:
    for root in (_PACKAGE, _CHECKOUT):
        if (root / directory / landmark).exists():
            return root / directory
    raise FileNotFoundError(f"rowq is not installed completely: it has no directory {directory}")
