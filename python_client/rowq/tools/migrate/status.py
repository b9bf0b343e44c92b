"""What is installed in a database, and whether it is still what was installed."""

from dataclasses import dataclass

from rowq.engines import TOOLS, engine_for_url, engine_module
from rowq.tools.migrate.inspection import BaseInspection
from rowq.tools.migrate.release import Release, release_for


@dataclass(frozen=True, slots=True)
class Drift:
    """A routine that is not as shipped; `problem` is missing, changed, unknown or orphaned.

    Orphaned: the account that it runs as is gone, and every call of it fails; migrate mends that.
    """

    routine: str
    problem: str


@dataclass(frozen=True, slots=True)
class Status:
    """What is installed.

    Attributes:
        server: the server's name and version.
        installed: number of the newest installed migration, 0 for none.
        rowq_version: the version of rowq that it brought; None for none, and when a newer rowq than
            this one has installed more.
        available: the numbers this rowq carries.
        pending: those of them that are not installed.
        newer: ids of installed migrations that this rowq does not know.
        drift: routines whose installed text is not the shipped one.
        owner: who owns the schema and everything in it; None when it is not installed.
        roles: for each of rowq's roles whether the server has it.
        notices: what to do about what is missing, and about rights that rowq has not given.
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
    """Look at a database and change nothing.

    Args:
        url: the database's URL.

    Raises:
        ForeignSchema: the schema rowq there was not made by rowq, or not everything in it.
        MissingPrivilege: this user may not look, or (PostgreSQL) somebody else owns the schema, or
            can act as its owner, and what he has put there could run with this user's rights.
        RoutedDatabase: this is a node of a cluster, which an add-on looks after (PostgreSQL).
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


def status_by(look: BaseInspection, release: Release) -> Status:
    """Return what a look finds, compared with a release; raises what `status` raises."""
    look.begin()
    owner = look.owner()
    ids = look.installed_ids() if owner else []
    newer = tuple(sorted(set(ids) - {numbered.id for numbered in release.migrations}))
    installed = release.installed([known for known in ids if known not in newer])
    roles = look.roles()
    shipped = look.shipped(release.files(installed))
    return Status(
        server=look.server(),
        installed=installed,
        rowq_version=release.get(installed).rowq_version if installed and not newer else None,
        available=tuple(numbered.number for numbered in release.migrations),
        pending=tuple(range(installed + 1, release.newest + 1)),
        newer=newer,
        drift=_drift(shipped, look.routines(), look.orphans()) if installed and not newer else (),
        owner=owner,
        roles=roles,
        notices=(*look.missing_roles(roles), *look.rights_of_others()) if owner else (),
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
