"""The first release: everything. Its rollback removes everything."""

from rowq.tools.migrate.steps import frozen

__depends__: set[str] = set()
__transactional__ = False
__rowq_version__ = "0.1.0"
__loses_messages__ = True

frozen(__file__)
