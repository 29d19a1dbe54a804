/** A graph drawn in layers, from left to right: the position of each box and line. */

export interface GraphNode {
  id: string;
  kind: string;
  label: string;
  note?: string;
  href?: string;
  tone?: "good" | "bad" | "changed" | "unknown";
}

export interface GraphEdge {
  from: string;
  to: string;
}

export interface Placed extends GraphNode {
  x: number;
  y: number;
}

export interface Drawing {
  nodes: Placed[];
  lines: string[];
  width: number;
  height: number;
}

export const BOX = { width: 190, height: 46 };

/** Return the drawing of a graph; edges to nodes that are not there are left out. */
export async function layers(nodes: GraphNode[], edges: GraphEdge[]): Promise<Drawing> {
  const dagre = (await import("@dagrejs/dagre")).default;
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 12, ranksep: 56, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: BOX.width, height: BOX.height });
  const known = new Set(nodes.map((node) => node.id));
  for (const edge of edges) {
    if (known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to) graph.setEdge(edge.from, edge.to);
  }
  dagre.layout(graph);
  const placed = nodes.map((node) => {
    const { x, y } = graph.node(node.id);
    return { ...node, x: x - BOX.width / 2, y: y - BOX.height / 2 };
  });
  const lines = graph.edges().map((edge) => curve(graph.edge(edge).points));
  const { width = 0, height = 0 } = graph.graph();
  return { nodes: placed, lines, width, height };
}

/** A smooth line through points. */
function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x.toFixed(1)} ${first.y.toFixed(1)}`;
  for (const [index, point] of rest.entries()) {
    const before = index === 0 ? first : rest[index - 1]!;
    const middle = (before.x + point.x) / 2;
    path += `C${middle.toFixed(1)} ${before.y.toFixed(1)} ${middle.toFixed(1)} ${point.y.toFixed(1)} ${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
  }
  return path;
}
