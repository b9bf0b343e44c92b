"""Write what is generated, or a release: python -m generate [release]."""

import argparse

from generate.files import write_all
from generate.release import release_all


def main() -> None:
    """Write all generated files anew, or the scripts of a release."""
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["files", "release"], default="files")
    what = parser.parse_args().what
    (release_all if what == "release" else write_all)()


if __name__ == "__main__":
    main()
