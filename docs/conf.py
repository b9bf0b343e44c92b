"""How Sphinx makes the site; see build.py, which lays out what it reads."""

from docs import links

project = "rowq"
author = "the authors of rowq"
project_copyright = author
root_doc = "docs/index"
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "docs.links",
    "docs.search_texts",
]

# Pages of the repository are pages of the site as they are. CONTRACT.md is not: the site has a page
# for each routine, made of the same contract, and links to the one lead to the others.
include_patterns = [
    "docs/**.md",
    "README.md",
    "CHANGELOG.md",
    "sql/*.md",
    "sql/*/*.md",
    "sql/*/addons/*/README.md",
    "benchmarks/*.md",
    "migrations/README.md",
    "tests/README.md",
]
exclude_patterns = [links.CONTRACT, "**/node_modules", "**/__pycache__"]

myst_enable_extensions = ["colon_fence"]
# Links into a page name its headings, as on a code host.
myst_heading_anchors = 4
# Commands are shown with their output, which is no program.
suppress_warnings = ["misc.highlighting_failure"]
# Quotation marks stay as they are written, to be copied.
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
# What is not rowq's own has no page here.
nitpick_ignore_regex = [("py:.*", "(?!rowq).*")]

html_theme = "furo"
html_title = "rowq"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["front"]
html_static_path = ["static"]
html_css_files = ["site.css"]
