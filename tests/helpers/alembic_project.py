"""An application's Alembic project, with its own branch beside rowq's."""

from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from rowq.tools import migrate

_ENV = """
from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
with context.begin_transaction():
    context.run_migrations()
"""
_OWN = """
from alembic import op

revision = "shop_0001"
down_revision = None
branch_labels = ("shop",)
depends_on = None


def upgrade():
    op.execute("create table rowq_test_shop (id int)")


def downgrade():
    op.execute("drop table rowq_test_shop")
"""


class Project:
    """A project in an empty folder, with one own revision and rowq's for an engine."""

    engine: sqlalchemy.Engine

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder = folder
        versions = folder / "versions"
        versions.mkdir()
        (folder / "env.py").write_text(_ENV, encoding="utf-8")
        (versions / "shop_0001.py").write_text(_OWN, encoding="utf-8")
        migrate.write_files(versions, migrate.alembic_files(engine))

    def config(self, connection: sqlalchemy.Connection) -> Config:
        """Return Alembic's configuration of the project."""
        config = Config()
        config.set_main_option("script_location", str(self._folder))
        config.attributes["connection"] = connection
        return config

    def upgrade(self, target: str) -> None:
        """Run `alembic upgrade`."""
        with self.engine.connect() as connection:
            command.upgrade(self.config(connection), target)
            connection.commit()

    def downgrade(self, target: str) -> None:
        """Run `alembic downgrade`."""
        with self.engine.connect() as connection:
            command.downgrade(self.config(connection), target)
            connection.commit()

    def current(self) -> set[str]:
        """Return the installed revisions."""
        with self.engine.connect() as connection:
            rows = connection.execute(sqlalchemy.text("select version_num from alembic_version"))
            return {str(row[0]) for row in rows}

    def branches(self) -> dict[str, set[str]]:
        """Return the head revisions with their branch labels."""
        with self.engine.connect() as connection:
            scripts = ScriptDirectory.from_config(self.config(connection))
        return {head: set(scripts.get_revision(head).branch_labels) for head in scripts.get_heads()}
