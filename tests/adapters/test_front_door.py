"""Recorders are reached from the front door, and cost nothing until they are."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = {
    "langgraph": ("langgraph", "langgraph"),
    "openai": ("openai", "openai"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}
"""By recorder, the package it needs and the extra that installs that."""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_that_is_missing_is_named(name: str) -> None:
    """`import woodrat` imports no framework; a recorder whose framework is missing says what to install."""
    package, extra = FRAMEWORKS[name]
    program = f"""
import sys
import woodrat
assert not [each for each in {[package for package, _ in FRAMEWORKS.values()]} if each in sys.modules]
sys.modules[{package!r}] = None
try:
    woodrat.{name}
except ModuleNotFoundError as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"woodrat.{name} needs the package {package}" in done.stdout
    assert f"pip install 'woodrat[{extra}]'" in done.stdout
