"""The migrations of each engine, and what an engine is called."""

from rowq.engines import engines
from rowq.errors import EngineUnknown
from rowq.resources import migrations_directory
from rowq.tools.migrate.release import Release, read_release


def release_for(engine: str) -> Release:
    """Return the migrations that this rowq carries for an engine, such as postgres.

    Raises:
        EngineUnknown: rowq has no engine of this name.
    """
    return read_release(migrations_directory() / named(engine))


def named(word: str) -> str:
    """Return the name of the engine that a word means: its name, or a scheme of its URLs.

    Raises:
        EngineUnknown: rowq has no engine of this name.
    """
    for engine in engines():
        if word == engine.name or word in engine.schemes:
            return engine.name
    known = ", ".join(engine.name for engine in engines())
    raise EngineUnknown(f"rowq has no engine {word!r}; it has {known}")
