"""Check whether rowq works in a database.

for check in examine("postgresql://..."):
    print(check.check_name, check.status, check.detail)
"""

from rowq.tools.doctor.check import Check, Status
from rowq.tools.doctor.examine import examine

__all__ = ["Check", "Status", "examine"]
