"""Configuration of Sphinx for the site; build.py lays out its input."""

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

# Links to CONTRACT.md lead to the page of the routine, see links.py.
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
# Link to headings as a code host does.
myst_heading_anchors = 4
# Console blocks contain output, which no lexer highlights.
suppress_warnings = ["misc.highlighting_failure"]
# Keep quotation marks as written, to be copied.
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
# Other packages have no page here.
nitpick_ignore_regex = [("py:.*", "(?!rowq).*")]

html_theme = "furo"
html_title = "rowq"
html_copy_source = False
html_show_sphinx = False
html_extra_path = ["front"]
html_static_path = ["static"]
html_logo = html_favicon = "../python_client/rowq/web/static/icon.svg"
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2457c5", "color-brand-content": "#2457c5"},
    "dark_css_variables": {"color-brand-primary": "#8db4ff", "color-brand-content": "#8db4ff"},
}
