"""Claims by a status and an owner: the clients of seed 003, and how fast they are."""

from typing import Any

from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.client import Rows, SqlClient, ids_of
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.work import fill, work


class OwnerClient(SqlClient):
    """A session that claims by writing its number into the messages."""

    def dequeue(self, batch: int) -> Rows:
        """Take up to batch messages."""
        if "find" in self.sections:
            return self.patiently(lambda: self._find_and_mark(batch))
        return self.patiently(lambda: self._claim(batch))

    def _find_and_mark(self, batch: int) -> Rows:
        """Select for update, then update, in one transaction."""
        self.session.run("begin")
        found = self.session.run(self.sections["find"], batch=batch)
        if found:
            self.session.run(self.sections["mark"], ids=ids_of(found))
        self.session.run("commit")
        return found

    def _claim(self, batch: int) -> Rows:
        """Update with a limit, then select what is one's own."""
        self.session.run(self.sections["claim"], batch=batch)
        if self.session.affected == 0:
            return []
        return self.session.run(self.sections["own"])


def claims(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Let sessions claim messages and delete them."""
    with form.open_client(url, scenario.body_bytes) as control:
        fill(control, scenario)
        return work(dialect, url, form, scenario, control)
