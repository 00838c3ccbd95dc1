import type { GradientMark, ScaleMark } from "@halfstep/grad-scaler";
import { RecordingError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import type { GradNode } from "./grad-node.js";

/** The marks of all terms that were added up in a gradient; empty where nothing is known. */
export type GradientMarks = ReadonlySet<GradientMark>;

export const unknownMarks: GradientMarks = new Set();

const plainMarks: GradientMarks = new Set<GradientMark>(["plain"]);

/**
 * The latest set of one mark, so that gradients of the backward passes of a step share it. Each step has a mark of its own, and a
 * WeakMap of them all would cost the garbage collector more than another set.
 */
let latest: { readonly mark: ScaleMark; readonly marks: GradientMarks } | undefined;

/** Marks of gradients that `grad()` has returned, from which another backward pass may start. */
const marksOfResults = new WeakMap<Tensor, GradientMarks>();

/** The set of one mark. */
export function marksOf(mark: GradientMark): GradientMarks {
  if (mark === "plain") return plainMarks;
  if (latest?.mark !== mark) latest = { mark, marks: new Set([mark]) };
  return latest.marks;
}

/** The marks of a sum. */
export function joinMarks(a: GradientMarks, b: GradientMarks): GradientMarks {
  if (a === b || b.size === 0) return a;
  if (a.size === 0) return b;
  const joined = new Set([...a, ...b]);
  return joined.size === a.size ? a : joined;
}

/** Records the marks of a gradient that is not the `grad` of a tensor. */
export function noteMarks(gradient: Tensor, marks: GradientMarks): void {
  if (marks.size > 0) marksOfResults.set(gradient, marks);
}

/** The marks that {@link noteMarks} recorded for a gradient. */
export const notedMarks = (gradient: Tensor): GradientMarks =>
  marksOfResults.get(gradient) ?? unknownMarks;

/**
 * The marks of the gradients of a backward pass, by tensor. A gradient carries a scale where its path from the root leads
 * through the op that scaled a loss. Call it before the pass frees its nodes.
 *
 * @param nodes those below the root, each after all that depend on it.
 * @param gradient of the root, where the caller has given one.
 * @throws RecordingError where a loss was scaled twice
 */
export function marksBelow(
  root: Tensor,
  nodes: readonly GradNode[],
  gradient: Tensor | undefined,
): (tensor: Tensor) => GradientMarks {
  const first = gradient ? notedMarks(gradient) : plainMarks;
  const scaling = nodes.filter(({ scaleMark }) => scaleMark);
  // Nearly always the scaling op is the last op of all, or there is none.
  if (scaling.length === 0) return () => first;
  if (scaling.length > 1 || scaling[0] !== root.gradNode) return marksByWay(root, nodes, first);
  const all = scaledBy(scaling[0]?.scaleMark as ScaleMark, first);
  return () => all;
}

function marksByWay(
  root: Tensor,
  nodes: readonly GradNode[],
  first: GradientMarks,
): (tensor: Tensor) => GradientMarks {
  const marks = new Map<Tensor, GradientMarks>([[root, first]]);
  const of = (tensor: Tensor): GradientMarks => marks.get(tensor) ?? unknownMarks;
  for (const { op, inputs, outputs, scaleMark } of nodes) {
    if (op.backward === "none") continue;
    const incoming = outputs.map(of).reduce(joinMarks, unknownMarks);
    const given = scaleMark ? scaledBy(scaleMark, incoming) : incoming;
    for (const input of inputs)
      if (input.requiresGrad) marks.set(input, joinMarks(of(input), given));
  }
  return of;
}

function scaledBy(mark: ScaleMark, incoming: GradientMarks): GradientMarks {
  for (const before of incoming)
    if (before !== "plain" && !before.isUnscaled)
      throw new RecordingError(
        "backward() of a loss that was scaled twice: call scale() once, and backward() on what it returns",
      );
  return marksOf(mark);
}
