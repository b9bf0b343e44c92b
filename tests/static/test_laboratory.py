"""The reports of the laboratory can be written of what is there; what they say fails no test."""

from tests.laboratory.babelfish import report as babelfish
from tests.laboratory.babelfish.record import files
from tests.laboratory.ograc import report as ograc
from tests.laboratory.ograc.client import public


def test_the_report_on_babelfish_has_a_line_for_every_file() -> None:
    page = babelfish.page()
    assert [file for file in files() if f"| `{file}` |" not in page] == []


def test_the_report_on_ograc_has_a_line_for_every_routine() -> None:
    page = ograc.page(ograc.last_run())
    assert [name for name in public() if f"| `routines/{name}.sql` |" not in page] == []
