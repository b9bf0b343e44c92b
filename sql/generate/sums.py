"""Files of SHA256SUMS, as sha256sum --check reads them."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

SUMS = "SHA256SUMS"


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return name and sum of files in a folder, as they are now."""
    return {name: digest_of(folder / name) for name in names}


def read_sums(folder: Path) -> dict[str, str]:
    """Return name and sum of every file that a folder's sums hold, none where it has no sums."""
    sums = folder / SUMS
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write_sums(folder: Path, sums: dict[str, str]) -> None:
    """Write name and sum of files into a folder, in the place of the sums that are there."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (folder / SUMS).write_text(text, encoding="utf-8", newline="\n")
