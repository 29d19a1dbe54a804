"""Call ids: what a model's provider calls each request for a tool. They are made up anew every time and say nothing.

Two runs that asked for the same tool with the same arguments did the same, whatever the ids. So ids are left out
wherever answers and messages of models are compared; the record keeps them.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon.form import Json

_ALWAYS: Final = frozenset({"tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id"})
"""Members that are ids of calls wherever they stand."""
_CALLS: Final = frozenset(
    {"tool_call", "tool_call_response", "tool_use", "tool_result", "function", "function_call", "function_call_output"}
)
"""Types of objects whose `id` is one."""
_ARGUMENTS: Final = ("arguments", "args", "input")


def without_call_ids(value: Any) -> Json:
    """Return an answer or messages of a model without the ids of calls."""
    if isinstance(value, list):
        return [without_call_ids(item) for item in value]
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]
    called = _is_call(value)
    return {
        name: without_call_ids(item)
        for name, item in value.items()
        if name not in _ALWAYS and not (called and name == "id")
    }


def _is_call(value: dict[str, Any]) -> bool:
    """Tell whether an object is a request for a tool, or a tool's answer to one."""
    kind = value.get("type")
    if isinstance(kind, str) and kind in _CALLS:
        return True
    return isinstance(value.get("function"), dict) or ("name" in value and any(name in value for name in _ARGUMENTS))
