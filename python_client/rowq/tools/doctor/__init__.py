"""Examine an installation: can rowq do its work in this database, and does it keep its word there.

    for check in examine("postgresql://..."):
        print(check.check_name, check.status, check.detail)

A check is yielded as soon as it is made.
"""

from rowq.tools.doctor.check import Check, Status
from rowq.tools.doctor.examine import examine

__all__ = ["Check", "Status", "examine"]
