"""Makes `recordings.json` of the requests that a side-by-side run wrote down: `python make_recordings.py FILE`.

What is kept of a request is its method, address, arguments and body, with the status and the members of the answer. An
id or a time that an earlier answer had is replaced by where it stood: `$3.entities.0.observation_id`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

RECORDINGS: Final = Path(__file__).with_name("recordings.json")
PASSING: Final = re.compile(r"obs_\w+|int_\w+|\d{4}-\d\d-\d\dT[\d:.]+Z")
"""What is another one in each run."""
OWN_PATHS: Final = re.compile(r"/[\w/.-]*?/(here|there)/")
"""Folders of the run."""


def texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text of an answer that changes from run to run, with where it stands."""
    if isinstance(value, dict):
        for name, one in value.items():
            if "." not in name and "/" not in name:
                yield from texts(one, f"{path}.{name}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from texts(one, f"{path}.{number}")
    elif isinstance(value, str) and PASSING.fullmatch(value):
        yield value, path


def kept(value: Any, places: dict[str, str]) -> Any:
    """Return a request with places for what changes."""
    if isinstance(value, dict):
        return {name: kept(one, places) for name, one in value.items()}
    if isinstance(value, list):
        return [kept(one, places) for one in value]
    if isinstance(value, str):
        return PASSING.sub(lambda found: places.get(found[0], found[0]), OWN_PATHS.sub("/home/", value))
    return value


def recordings(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the requests of each program, in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    places: dict[str, dict[str, str]] = {}
    for line in lines:
        program = line["program"].partition(":")[0]
        calls, known = found.setdefault(program, []), places.setdefault(program, {})
        request = {name: kept(line[name], known) for name in ("path", "query", "body") if line[name] not in ({}, None)}
        if line["body"] == {}:
            request["body"] = {}
        answer = line["answer"]
        calls.append(
            {
                "as": line["program"].partition(": ")[2],
                "method": line["method"],
                **request,
                "status": line["status"],
                "members": sorted(answer) if isinstance(answer, dict) else [],
            }
        )
        for text, path in texts(answer, f"${len(calls) - 1}"):
            known.setdefault(text, path)
    return found


if __name__ == "__main__":
    said = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
    calls = recordings(said)
    rows = [",\n".join(json.dumps(call) for call in calls[name]) for name in sorted(calls)]
    named = [f"{json.dumps(name)}: [\n{row}\n]" for name, row in zip(sorted(calls), rows, strict=True)]
    RECORDINGS.write_text("{" + ",\n".join(named) + "}\n", "utf-8")
