"""Writes the reports of the laboratory anew: python -m tests.laboratory.

What a file of SQL did that has changed since is taken out of the notes.
"""

from tests.laboratory.babelfish import report as babelfish
from tests.laboratory.babelfish.record import RECORD, current, read
from tests.laboratory.ograc import report as ograc
from tests.laboratory.record import as_json

if __name__ == "__main__":
    RECORD.write_text(as_json(current(read(RECORD))), "utf-8")
    babelfish.PAGE.write_text(babelfish.page(), "utf-8")
    ograc.note(ograc.last_run())
    ograc.PAGE.write_text(ograc.page(ograc.last_run()), "utf-8")
