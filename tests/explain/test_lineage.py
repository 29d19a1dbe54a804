"""Trees from an answer back to its sources, and how they are drawn."""

from __future__ import annotations

from typing import Any

from tests.runs.story import OBSERVATION, RUN, body, condition, loan, record

from woodrat.explain import lineage
from woodrat.explain.lineage import Node


class Ends:
    """Leads nowhere: of what a step names nothing further is known."""

    def observation(self, id: str) -> Node:
        """Return an observation."""
        return Node("observation", id, id)

    def decision(self, run: str, span: str) -> Node:
        """Return a decision."""
        return Node("decision", f"{run}/{span}", span)

    def stage(self, run: str, stage: str) -> Node:
        """Return what was decided at a stage."""
        return Node("stage", f"{run}#{stage}", stage)

    def recalled(self, run: str, position: int) -> Node:
        """Return a run."""
        return Node("run", run, run)


ENDS = Ends()


def kinds(node: Node) -> list[str]:
    """Return the kinds on the way down, first branch by first branch."""
    return [node.kind, *(kinds(node.nodes[0]) if node.nodes else [])]


def test_an_answer_leads_to_its_observation() -> None:
    """The way back goes by decision, evidence, read and field to the observation that was read."""
    tree = lineage.answer(record(), ENDS)
    assert kinds(tree) == ["answer", "decision", "evidence", "read", "field", "observation"]
    assert tree.label.startswith("answer Application #42: REJECTED.")
    (evidence,) = tree.find("evidence")
    assert evidence.label == "creditScore = 580 (lt 600: true)"
    assert [node.id for node in tree.find("observation")] == [OBSERVATION]


def test_what_no_decision_looked_at_is_told_besides() -> None:
    """Calls and reads that are nobody's evidence stand beside the decisions."""
    tree = lineage.answer(record(), ENDS)
    assert [node.kind for node in tree.nodes] == ["decision", "tool", "model"]
    said = loan()
    said.insert(2, ("run.read", body(7, entity="rate/base", position=3, fields={"p": {"observation": "obs_x"}})))
    tree = lineage.answer(record(said), ENDS)
    assert [node.kind for node in tree.nodes] == ["decision", "tool", "model", "read"]
    assert [node.id for node in tree.find("observation")] == [OBSERVATION, "obs_x"]


def decided(origin: dict[str, Any], **said: Any) -> Node:
    """Return the way back from a decision on one fact of this origin."""
    rule = {"chosen": "a", "matched": True, "conditions": [{**condition("x", "eq", 1, 1, True), "origin": origin}]}
    steps = [
        ("run.started", body(0, inputs={"x": 1})),
        ("run.tool", body(1, name="bureau", args={"id": 1}, result={"x": 1})),
        ("run.model", body(2, model="small-1", response={"x": 1})),
        ("run.decided", body(3, stage="s", chosen="a", rules=[rule], **said)),
    ]
    found = record(steps)
    return lineage.decision(found, found.decisions[0], ENDS)


def test_every_origin_has_its_node() -> None:
    """Evidence comes from a tool, a model, an input, a read without its entry, or the agent's own word."""
    ends = {
        "tool": {"kind": "tool", "span": f"{1:016x}", "path": "/x"},
        "model": {"kind": "model", "span": f"{2:016x}", "path": "/x"},
        "input": {"kind": "input", "name": "x"},
        "stated": {"kind": "stated"},
    }
    for kind, origin in ends.items():
        assert kinds(decided(origin)) == ["decision", "evidence", kind]
    read = {"kind": "read", "entity": "loan/1", "field": "x", "observations": ["obs_1", "obs_2"], "position": 9}
    tree = decided(read)
    assert kinds(tree) == ["decision", "evidence", "field", "observation"]
    assert [node.id for node in tree.find("observation")] == ["obs_1", "obs_2"]
    nothing = decided({**read, "observations": []})
    assert nothing.find("field")[0].label == "loan/1#x, of which nothing was said"


def test_a_tree_is_plain_json() -> None:
    """`to_json` has kind, id, label, details and what it comes from, all the way down."""
    found = lineage.answer(record(), ENDS).to_json()
    assert (found["kind"], found["id"]) == ("answer", RUN)
    assert found["nodes"][0]["details"]["chosen"] == "rejected"
    assert found["nodes"][0]["nodes"][0]["nodes"][0]["nodes"][0]["nodes"][0]["id"] == OBSERVATION


SHARED = Node("observation", "o", "what", {}, (Node("source", "s", 'a "file" <b>\n#1 \\'),))
TREE = Node("field", "f", "loan/42#x", {}, (Node("read", "1", "first", {}, (SHARED,)), SHARED))


def test_a_tree_is_drawn_for_people() -> None:
    """Lines show what hangs where; what was told is not told again."""
    assert list(lineage.lines(TREE)) == [
        "loan/42#x",
        "├─ first",
        "│  └─ what",
        '│     └─ a "file" <b>\n#1 \\',
        "└─ what (as above)",
    ]


def test_a_tree_is_drawn_for_graphviz() -> None:
    """Each thing is one box, quoted; what is shared has two edges."""
    assert lineage.dot(TREE) == (
        "digraph woodrat {\n  rankdir=LR;\n  node [shape=box];\n"
        '  n0 [label="field: loan/42#x"];\n  n1 [label="read: first"];\n  n2 [label="observation: what"];\n'
        '  n3 [label="source: a \\"file\\" <b> #1 \\\\"];\n'
        "  n0 -> n1;\n  n0 -> n2;\n  n1 -> n2;\n  n2 -> n3;\n}\n"
    )


def test_a_tree_is_drawn_for_mermaid() -> None:
    """No text can leave its box."""
    assert lineage.mermaid(TREE).splitlines() == [
        "flowchart LR",
        '  n0["field: loan/42#35;x"]',
        '  n1["read: first"]',
        '  n2["observation: what"]',
        '  n3["source: a #quot;file#quot; #lt;b#gt; #35;1 #92;"]',
        "  n0 --> n1",
        "  n0 --> n2",
        "  n1 --> n2",
        "  n2 --> n3",
    ]
