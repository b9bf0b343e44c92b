"""CHANGELOG.md: what is new below [Unreleased], and a dated section for each released version."""

import re
from datetime import date

UNRELEASED = "## [Unreleased]"

_SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?$", re.MULTILINE)
_ENTRY = re.compile(r"^- ", re.MULTILINE)


def released_versions(text: str) -> dict[str, str]:
    """Return the versions that the changelog has a section for, and the day of each."""
    sections = _SECTION.finditer(text)
    return {found["name"]: found["day"] or "" for found in sections if found["name"][0].isdigit()}


def numbers_of(version: str) -> tuple[int, ...]:
    """Return a version such as 0.1.0 as numbers, to be compared."""
    return tuple(int(number) for number in version.split("."))


def faults_of_changelog(text: str, version: str) -> list[str]:
    """Return what keeps a version from getting its section, in words; nothing if all is well."""
    sections = released_versions(text)
    if version in sections:
        day = sections[version]
        return [
            f"CHANGELOG.md has {version} as released{f' on {day}' if day else ''}:"
            " begin the next version by make next"
        ]
    if later := faults_of_order(text, version):
        return later
    if not _ENTRY.search(unreleased(text)):
        return [
            f"CHANGELOG.md has no line below {UNRELEASED}: write there what is new in {version}"
        ]
    return []


def faults_of_order(text: str, version: str) -> list[str]:
    """Return which released version comes after this one, in words; nothing if none does."""
    later = [name for name in released_versions(text) if numbers_of(name) > numbers_of(version)]
    return [f"CHANGELOG.md has {later[0]}, which comes after {version}"] if later else []


def dated(text: str, version: str, day: date) -> str:
    """Return the changelog with what is unreleased as the section of a version.

    Args:
        text: the changelog, in which faults_of_changelog finds nothing.
        version: such as 0.1.0.
        day: when it is released.
    """
    heading = f"{UNRELEASED}\n\n## [{version}] - {day.isoformat()}\n"
    return text.replace(f"{UNRELEASED}\n", heading, 1)


def unreleased(text: str) -> str:
    """Return what stands below the heading of what is unreleased."""
    rest = text.partition(f"\n{UNRELEASED}\n")[2]
    following = _SECTION.search(rest)
    return rest[: following.start()] if following else rest
