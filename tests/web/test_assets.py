"""Third-party files in the package are unmodified and have a license."""

import hashlib
from pathlib import Path

import rowq.web

STATIC = Path(rowq.web.__file__).parent / "static"
PUBLISHED = {
    # htmx.org 2.0.11
    "htmx.min.js": "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    "htmx.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    # idiomorph 0.8.0
    "idiomorph-ext.min.js": "5811b9a7eda14878b7dab4378bf60432e1bb6f11fcfb970cc26540642650181e",
    "idiomorph.LICENSE": "d3d2456f76414f2456104660ebd65aff1c04cd7966b942bdabd63f3cdb316a38",
    # uplot 1.6.32
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
"""File -> SHA-256 in its npm package, in dist/ except licenses."""
OWN = {"icon.svg", "rowq.css", "rowq.js"}


def test_static_files_are_own_or_as_published() -> None:
    found = {path.name for path in STATIC.iterdir()}
    assert found == OWN | PUBLISHED.keys()
    for name, digest in PUBLISHED.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest, name


def test_templates_load_static_files_and_inline_nothing() -> None:
    templates = STATIC.parent / "templates"
    base = (templates / "base.html").read_text(encoding="utf-8")
    for name in found_in_pages():
        assert f"/static/{name}" in base
    for path in templates.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "style=" not in text, path
        assert "|safe" not in text.replace(" ", ""), path
        assert " on" + "click" not in text, path


def found_in_pages() -> list[str]:
    return [path.name for path in STATIC.iterdir() if path.suffix in {".js", ".css", ".svg"}]
