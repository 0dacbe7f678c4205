"""What the files around the package say about it, and about each other."""

import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_commits_are_checked_by_the_ruff_that_make_test_runs():
    (pinned,) = re.findall(r"^ruff==(\S+)$", read("constraints.txt"), re.MULTILINE)
    hooks = {
        repo["repo"].rsplit("/", 1)[1]: repo["rev"] for repo in yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    }
    assert hooks["ruff-pre-commit"] == f"v{pinned}"


def test_the_oldest_and_newest_python_are_tested():
    text = read("pyproject.toml")
    (oldest,) = re.findall(r'requires-python = ">=(\S+)"', text)
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", text)
    checks = yaml.safe_load(read(".github/workflows/checks.yml"))
    rows = checks["jobs"]["tests"]["strategy"]["matrix"]["include"]
    tested = {row["python"] for row in rows}
    assert {oldest, named[0], named[-1]} <= tested
    assert tested <= set(named)
    assert oldest == named[0]
    assert {row["os"].split("-")[0] for row in rows} == {"ubuntu", "macos", "windows"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_ask_for_no_more_rights_than_they_need(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        rights = job.get("permissions", {})
        assert rights == {} or name in ("publish", "deploy")
        assert "secrets." not in str(job)
        # Nothing that a stranger's pull request says is run as a command.
        assert not any("github.event" in step.get("run", "") for step in job["steps"])


def test_releases_are_published_without_a_token():
    jobs = yaml.safe_load(read(".github/workflows/release.yml"))["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "build"
    assert "cagat demo --quick" in str(jobs["build"])


def test_the_changelog_tells_of_this_version():
    from cagat import __version__

    versions = re.findall(r"^## \[(\S+)\]", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[:2] == ["Unreleased", __version__]
    assert versions[1:] == sorted(versions[1:], reverse=True)


@pytest.mark.skipif(sys.platform == "win32", reason="git makes files of links there")
def test_the_presets_can_be_seen_from_the_front_door():
    assert (ROOT / "configs").resolve() == ROOT / "src" / "cagat" / "configs"
