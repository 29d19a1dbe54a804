"""A parameter that a verb gains is a line at its declaration; every surface that is derived from it has it then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.api import link
from woodrat.api.coroutine import coroutine
from woodrat.api.verb import Verb, verb, verbs_of
from woodrat.server import routes
from woodrat.server.openapi import document

if TYPE_CHECKING:
    from woodrat.api.parameters import Budget, Priority, RefArg


class Before:
    """A verb as it was."""

    @verb(get="/v1/samples/{ref}", command="samples show REF")
    def show(self, ref: RefArg, *, priority: Priority | None = None) -> dict[str, Any]:
        """Show a sample."""
        return {"ref": str(ref), "priority": priority}


class After:
    """The same verb, with one line more."""

    @verb(get="/v1/samples/{ref}", command="samples show REF")
    def show(
        self,
        ref: RefArg,
        *,
        priority: Priority | None = None,
        budget: Budget | None = None,
    ) -> dict[str, Any]:
        """Show a sample."""
        return {"ref": str(ref), "priority": priority, "budget": budget}


class Transport:
    """A server that answers with what it was asked."""

    def get(self, path: str, asked: dict[str, Any]) -> Any:
        """Return the question."""
        return {"path": path, **{name: value for name, value in asked.items() if value is not None}}


def seen(kind: Any) -> dict[str, bool]:
    """Return where a parameter of the sample verb is found."""
    (sample,) = verbs_of(kind, "samples")
    assert isinstance(sample, Verb)
    route = routes.declared_route(sample)
    operation = document("1", [route])["paths"]["/v1/samples/{ref}"]["get"]

    class Remote(kind):  # type: ignore[misc]
        """The sample behind a server."""

        link = link.Link(Transport())  # type: ignore[arg-type]
        show = link_over(sample)

    class Served:
        """The ledger of a server."""

        samples = kind()

    def taken(call: Any) -> bool:
        try:
            return "budget" in call(budget=3)
        except TypeError:
            return False

    class Awaited:
        """The sample as a coroutine."""

        target = kind()
        show = coroutine(kind.show)

    return {
        "library": taken(lambda **more: kind().show("a/b", **more)),
        "client": taken(lambda **more: Remote().show("a/b", **more)),
        "coroutine": taken(lambda **more: run(Awaited().show("a/b", **more))),
        "REST": taken(lambda **more: route.answer(Served(), ref="a/b", **more)),
        "OpenAPI": any(param["name"] == "budget" for param in operation["parameters"]),
        "reference": "`budget`" in "\n".join(section(sample)),
    }


def run(awaitable: Any) -> Any:
    """Return what an awaitable comes to."""
    import asyncio

    async def whole() -> Any:
        return await awaitable

    return asyncio.run(whole())


def link_over(sample: Verb) -> Any:
    """Return the method that sends a verb."""
    return link.over(sample)


def section(sample: Verb) -> list[str]:
    """Return the part of a reference page about a verb."""
    from tests.docs.make_reference import section as written

    return list(written(sample))


def test_one_line_more_is_found_on_every_derived_surface() -> None:
    """Before, no surface takes the parameter; with its one line, all of them do."""
    assert not any(seen(Before).values())
    assert all(seen(After).values()), seen(After)
