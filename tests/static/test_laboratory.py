"""The reports of the laboratory can be written of what is there; what they say fails no test."""

from tests.laboratory.babelfish import report as babelfish
from tests.laboratory.babelfish.record import files
from tests.laboratory.ograc import report as ograc
from tests.laboratory.ograc.client import public


def test_the_report_on_babelfish_has_every_file() -> None:
    page = babelfish.page()
    assert [file for file in files() if page.count(f"`{file}`") != 1] == []


def test_the_report_on_ograc_has_every_routine() -> None:
    page = ograc.page(ograc.last_run())
    assert [name for name in public() if page.count(f"`routines/{name}.sql`") != 1] == []
