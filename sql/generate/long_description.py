"""The package's long description: python_client/README.md with absolute links to the repository.

hatchling calls this when it builds or installs a checkout. Without Repository in [project.urls] of
pyproject.toml, the links stay relative.
"""

import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "Repository"
PAGE = "python_client/README.md"

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


class LongDescription(MetadataHookInterface):
    """The hook that sets the long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme to the metadata."""
        page = (Path(self.root) / PAGE).read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get(REPOSITORY)
        if repository:
            page = with_absolute_links(
                page, repository, metadata["version"], posixpath.dirname(PAGE)
            )
        metadata["readme"] = {"content-type": "text/markdown", "text": page}


def repository_of(root: Path) -> str | None:
    """Return the address of the repository, or None."""
    with (root / "pyproject.toml").open("rb") as file:
        urls: dict[str, str] = tomllib.load(file)["project"].get("urls", {})
    return urls.get(REPOSITORY)


def with_absolute_links(page: str, repository: str, version: str, folder: str) -> str:
    """Return Markdown whose links point to the files of a version's tag.

    The links are relative to folder. Links use blob/TAG, pictures raw/TAG, as on GitHub and GitLab.
    """
    address = repository.rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        mark, text, target = link.groups()
        path = posixpath.normpath(posixpath.join(folder, target))
        return f"{mark}[{text}]({address}/{'raw' if mark else 'blob'}/v{version}/{path})"

    return _LINK.sub(absolute, page)
