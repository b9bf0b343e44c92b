"""A page for people: the queues of a database in a browser, beside an application or by itself.

    app.mount("/rowq", rowq.web.create_app(url, authorize=may_look))

app.py puts the application together of what site.py keeps; serving.py serves and ends it. access.py
decides who may do what, databases.py calls the routines, and sampler.py looks once for all pages.
pages.py and actions.py answer requests. templates/ and static/ are what a browser gets; of static/,
the files with a licence beside them are of others. It needs the extra `web`; nothing else of rowq
imports it.
"""

from rowq.errors import PackageMissing

try:
    import jinja2
    import starlette
except ImportError as error:
    raise PackageMissing("rowq.web needs Starlette and Jinja2: pip install 'rowq[web]'") from error

from rowq.web.app import create_app
from rowq.web.serving import end, page_lifespan

__all__ = ["create_app", "end", "page_lifespan"]

del jinja2, starlette
