"""The list of what an oGRAC has executed is a report: a changed file is named, not refused."""

import warnings

from tests.engines.ograc_list import changed_since, last_run


def test_files_that_have_changed_since_the_run_on_ograc_are_named() -> None:
    if changed := changed_since(last_run()):
        warnings.warn(f"changed since the run on oGRAC: {', '.join(changed)}", stacklevel=1)
