"""Celery broker, and kombu transport; extra `celery`.

Importing this package registers the scheme `rowq+postgresql://...`, and the same for every URL of
rowq.connect. kombu has no entry points for transports, so your program must import it.

>>> import rowq.contrib.celery
>>> app = Celery("shop", broker="rowq+postgresql://user:password@host/database")
"""

from rowq.errors import PackageMissing

try:
    from kombu.transport import TRANSPORT_ALIASES
except ImportError as error:
    raise PackageMissing("rowq.contrib.celery needs kombu: pip install 'rowq[celery]'") from error

from rowq.contrib.celery.channel import Channel, Transport

__all__ = ["Channel", "Transport"]

TRANSPORT_ALIASES["rowq"] = "rowq.contrib.celery.channel:Transport"
