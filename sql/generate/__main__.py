"""Write generated files, a release, its distribution files, or the next version.

python -m sql.generate [release|dist]
python -m sql.generate next VERSION [NAME]
"""

import argparse

from sql.generate.begin import begin_all
from sql.generate.dist import make_dist
from sql.generate.files import write_all
from sql.generate.release import release_all


def main() -> None:
    """Write all generated files, or what the command names."""
    parser = argparse.ArgumentParser(prog="python -m sql.generate", description=__doc__)
    commands = parser.add_subparsers(dest="what")
    commands.add_parser("release", help="date the changelog, freeze the newest migrations")
    commands.add_parser("dist", help="build the distribution files")
    following = commands.add_parser("next", help="begin the next version")
    following.add_argument("version")
    following.add_argument("name", nargs="?", default="")
    options = parser.parse_args()
    match options.what:
        case "release":
            release_all()
        case "dist":
            make_dist()
        case "next":
            begin_all(options.version, options.name)
        case _:
            write_all()


if __name__ == "__main__":
    main()
