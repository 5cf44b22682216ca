"""The Dockerfile and what it copies: all that can be checked with no Docker engine."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import PurePosixPath

import pytest

from tests.command import ROOT
from tests.compose_file import SECRET, SERVICES

DOCKERFILE = (ROOT / "Dockerfile").read_text()


def _instructions(name: str) -> list[str]:
    """The arguments of each `name` instruction of the Dockerfile, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in joined.splitlines() if line.startswith(f"{name} ")]


def _copied() -> list[str]:
    return [source for arguments in _instructions("COPY") for source in arguments.split()[:-1]]


def _sent_to_the_engine(path: str) -> bool:
    """Whether .dockerignore lets `path` into the build: of the patterns matching it or a parent, the last one wins."""
    sent = True
    names = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip().removeprefix("!").removeprefix("**/")
        if line.strip() and not line.startswith("#"):
            anywhere = line.removeprefix("!").startswith("**/")
            parts = [PurePosixPath(name).name for name in names] if anywhere else names
            if any(fnmatch(part, pattern) for part in parts):
                sent = line.startswith("!")
    return sent


def test_image_holds_no_secrets() -> None:
    assert [line for line in _instructions("ENV") + _instructions("ARG") if SECRET.search(line)] == []


def test_compose_and_image_start_the_same_worker() -> None:
    (command,) = _instructions("CMD")
    assert json.loads(command) == SERVICES["worker"].command


def test_base_image_is_slim_and_pinned() -> None:
    (base,) = _instructions("FROM")
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-[a-z]+", base)


def test_image_does_not_run_as_root() -> None:
    (user,) = _instructions("USER")
    uid, _, gid = user.partition(":")
    assert int(uid) > 0
    assert int(gid) > 0
    after = DOCKERFILE.partition("\nUSER ")[2]
    assert not re.search(r"^(RUN|COPY|ADD) ", after, re.MULTILINE)


def test_image_installs_this_checkout_with_the_pinned_versions() -> None:
    (install,) = [line for line in _instructions("RUN") if "pip install" in line]
    assert re.search(r"--constraint constraints\.txt '\.\[[a-z,-]+\]'", install)
    assert {"pyproject.toml", "constraints.txt", "perdure"} <= set(_copied())


@pytest.mark.parametrize("path", _copied())
def test_copied_path_exists_and_is_sent_to_the_engine(path: str) -> None:
    assert (ROOT / path).exists()
    assert _sent_to_the_engine(path)


@pytest.mark.parametrize("path", [".venv/bin/python", ".git/config", ".env", "support.db", "perdure/__pycache__/x.pyc"])
def test_path_stays_out_of_the_build(path: str) -> None:
    assert not _sent_to_the_engine(path)
