"""Draw layers.svg and life.svg from their .dot: python -m docs.picture.

Graphviz is the WebAssembly build of tests/npm, because other versions and fonts write other files.
"""

import subprocess
import sys
from pathlib import Path

DRAWN = tuple(Path(__file__).with_name(name) for name in ("layers.svg", "life.svg"))
_MODULE = Path(sys.prefix) / "npm" / "node_modules" / "@viz-js" / "viz" / "dist" / "viz.js"
_DRAW = """\
import { readFileSync } from "node:fs";
const { instance } = await import(process.argv[1]);
const viz = await instance();
process.stdout.write(viz.renderString(readFileSync(0, "utf-8"), { format: "svg" }));
"""
_HEAD = "<!-- Generated from {} by python -m docs.picture -->\n"


def drawn(picture: Path) -> str:
    """Return a picture drawn from its source."""
    source = picture.with_suffix(".dot")
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", _DRAW, _MODULE.as_uri()],
        input=source.read_text(encoding="utf-8"),
        capture_output=True,
        text=True,
        check=True,
    )
    # Drop the XML declaration and the doctype.
    return _HEAD.format(source.name) + done.stdout[done.stdout.index("<svg") :]


if __name__ == "__main__":
    for one in DRAWN:
        one.write_text(drawn(one), encoding="utf-8", newline="\n")
