"""The text that a package index shows: README.md, with links that lead to the repository's files.

hatchling calls this when it builds, and when it installs a checkout. The address is Repository in
[project.urls] of pyproject.toml, which is set once there is one; without it the links stay
relative.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "Repository"

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


class LongDescription(MetadataHookInterface):
    """Gives the package its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme to the metadata."""
        page = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get(REPOSITORY)
        if repository:
            page = with_absolute_links(page, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def repository_of(root: Path) -> str | None:
    """Return the address of the repository, None where there is none yet."""
    with (root / "pyproject.toml").open("rb") as file:
        urls: dict[str, str] = tomllib.load(file)["project"].get("urls", {})
    return urls.get(REPOSITORY)


def with_absolute_links(page: str, repository: str, version: str) -> str:
    """Return a page whose links and pictures lead to the files of a version's tag.

    Args:
        page: Markdown.
        repository: the address, as of GitHub or GitLab, which show a file below blob/TAG, and have
            it as it is, as a picture must be, below raw/TAG.
        version: of the package; its tag is v and the version.
    """
    address = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        mark, text, path = link.groups()
        return f"{mark}[{text}]({address}/{'raw' if mark else 'blob'}/v{version}/{path})"

    return _LINK.sub(absolute, page)
