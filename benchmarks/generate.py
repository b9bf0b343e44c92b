"""Write the reports and the plots anew from the results: make generate."""

from pathlib import Path

from benchmarks.studies.pages import PAGES


def main() -> None:
    """Write every report with its plots; nothing is measured."""
    for page in PAGES:
        page.write(Path(__file__).parent)


if __name__ == "__main__":
    main()
