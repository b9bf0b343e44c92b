"""Write what is generated, a release or scripts: python -m generate [release|scripts]."""

import argparse

from generate.files import write_all
from generate.release import release_all
from generate.scripts import write_scripts


def main() -> None:
    """Write all generated files anew, or the scripts of a release, or those to give away."""
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    makers = {"files": write_all, "release": release_all, "scripts": write_scripts}
    parser.add_argument("what", nargs="?", choices=makers, default="files")
    makers[parser.parse_args().what]()


if __name__ == "__main__":
    main()
