"""Write what is generated, a release or its files: python -m generate [release|dist]."""

import argparse

from generate.dist import write_dist
from generate.files import write_all
from generate.release import release_all


def main() -> None:
    """Write all generated files anew, or the scripts of a release, or the files to give away."""
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    makers = {"files": write_all, "release": release_all, "dist": write_dist}
    parser.add_argument("what", nargs="?", choices=makers, default="files")
    makers[parser.parse_args().what]()


if __name__ == "__main__":
    main()
