"""Status: the installed version, and modifications of it."""

from dataclasses import dataclass

from rowq.engines import TOOLS, engine_for_url, engine_module
from rowq.tools.migrate.inspection import BaseInspection
from rowq.tools.migrate.release import Release, release_for


@dataclass(frozen=True, slots=True)
class Drift:
    """A modified routine; `problem` is missing, changed, unknown or orphaned.

    Orphaned: the account it runs as does not exist, so every call fails; `migrate` repairs it.
    """

    routine: str
    problem: str


@dataclass(frozen=True, slots=True)
class Status:
    """The installed version and its modifications.

    Attributes:
        server: the server's name and version.
        installed: number of the newest installed migration, 0 for none.
        rowq_version: its version of rowq; None if nothing is installed, or a newer rowq has
            installed more.
        available: the numbers in this rowq.
        pending: available numbers that are not installed.
        newer: ids of installed migrations that this rowq does not know.
        drift: routines that differ from the released ones.
        owner: owner of the schema; None if it is not installed.
        roles: which of rowq's roles exist.
        notices: what to do about missing objects, and about privileges not granted by rowq.
    """

    server: str
    installed: int
    rowq_version: str | None
    available: tuple[int, ...]
    pending: tuple[int, ...]
    newer: tuple[str, ...]
    drift: tuple[Drift, ...]
    owner: str | None
    roles: dict[str, bool]
    notices: tuple[str, ...]


def status(url: str) -> Status:
    """Return what is installed in a database, without changing anything.

    Args:
        url: the database's URL.

    Raises:
        ForeignSchema: not everything in the schema rowq was created by rowq.
        MissingPrivilege: this account cannot read what is installed. PostgreSQL: or another account
            owns the schema or can act as its owner, and its code could run with this account's
            privileges.
        RoutedDatabase: the database is a node of a Citus cluster (PostgreSQL).
        CannotConnect: the database could not be reached.
    """
    engine = engine_for_url(url)
    connection = engine.connect(url)
    try:
        return status_by(
            engine_module(engine.name, "status", TOOLS).Inspection(connection),
            release_for(engine.name),
        )
    finally:
        engine.close(connection)


def status_by(inspection: BaseInspection, release: Release) -> Status:
    """Compare an installation with a release; raise as `status` does."""
    inspection.begin()
    owner = inspection.owner()
    ids = inspection.installed_ids() if owner else []
    newer = tuple(sorted(set(ids) - {numbered.id for numbered in release.migrations}))
    installed = release.installed([known for known in ids if known not in newer])
    roles = inspection.roles()
    shipped = inspection.shipped(release.files(installed))
    is_known = installed and not newer
    return Status(
        server=inspection.server(),
        installed=installed,
        rowq_version=release.get(installed).rowq_version if is_known else None,
        available=tuple(numbered.number for numbered in release.migrations),
        pending=tuple(range(installed + 1, release.newest + 1)),
        newer=newer,
        drift=_drift(shipped, inspection.routines(), inspection.orphans()) if is_known else (),
        owner=owner,
        roles=roles,
        notices=(*inspection.missing_roles(roles), *inspection.rights_of_others()) if owner else (),
    )


def _drift(
    shipped: dict[str, str], found: dict[str, str], orphans: dict[str, str]
) -> tuple[Drift, ...]:
    both = shipped.keys() & found.keys()
    drift = [Drift(name, "missing") for name in shipped.keys() - found.keys()]
    drift += [Drift(name, "unknown") for name in found.keys() - shipped.keys()]
    drift += [Drift(name, "changed") for name in both if found[name] != shipped[name]]
    drift += [Drift(name, "orphaned") for name in orphans]
    return tuple(sorted(drift, key=lambda entry: entry.routine))
