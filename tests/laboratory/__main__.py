"""Writes the reports of the laboratory anew: python -m tests.laboratory."""

from __future__ import annotations

from tests.laboratory.babelfish import report as babelfish
from tests.laboratory.ograc import report as ograc

if __name__ == "__main__":
    babelfish.PAGE.write_text(babelfish.page(), "utf-8")
    ograc.PAGE.write_text(ograc.page(ograc.last_run()), "utf-8")
