"""What docker-compose.yml says."""

from __future__ import annotations

import re
from typing import Any

import yaml
from pydantic import BaseModel

from tests.command import ROOT

COMPOSE = ROOT / "docker-compose.yml"

SECRET = re.compile(r"(?i)password|passwd|pwd|secret|token|api_?key|private_?key|credential")


class Dependency(BaseModel):
    condition: str


class Check(BaseModel):
    test: list[str]


class Service(BaseModel):
    image: str
    build: str | None = None
    command: list[str] = []
    depends_on: dict[str, Dependency] = {}
    environment: dict[str, str] = {}
    healthcheck: Check | None = None
    ports: list[str] = []
    privileged: bool = False
    restart: str = "no"
    volumes: list[str] = []


class Source(BaseModel):
    file: str


class Project(BaseModel):
    services: dict[str, Service]
    configs: dict[str, Source]
    volumes: dict[str, Any]


PROJECT = Project.model_validate(yaml.safe_load(COMPOSE.read_text()))
SERVICES = PROJECT.services
