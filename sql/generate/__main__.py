"""Write what is generated, a release, its files, or the beginning of the next version.

python -m sql.generate [release|dist]
python -m sql.generate next VERSION [NAME]
"""

import argparse

from sql.generate.begin import begin_all
from sql.generate.dist import make_dist
from sql.generate.files import write_all
from sql.generate.release import release_all


def main() -> None:
    """Write all generated files anew, or what the first argument says."""
    parser = argparse.ArgumentParser(prog="python -m sql.generate", description=__doc__)
    commands = parser.add_subparsers(dest="what")
    commands.add_parser("release", help="date the changelog, freeze the newest migrations")
    commands.add_parser("dist", help="build the files to give away")
    following = commands.add_parser("next", help="begin the next version")
    following.add_argument("version")
    following.add_argument("name", nargs="?", default="")
    given = parser.parse_args()
    match given.what:
        case "release":
            release_all()
        case "dist":
            make_dist()
        case "next":
            begin_all(given.version, given.name)
        case _:
            write_all()


if __name__ == "__main__":
    main()
