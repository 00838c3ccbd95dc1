import { RecordingError } from "../errors.js";
import { repeating } from "../record/repetition.js";
import type { GradNode } from "./grad-node.js";
import { writeSince } from "./versions.js";

/** A generator of random numbers that can go back to an offset and draw the same numbers again. */
export interface Draws {
  /** How much has been drawn. */
  offset: number;
}

/** The nodes and inner segments that one run of a checkpointed function recorded. */
export interface Tape {
  /** In the order in which they were recorded, without those of inner segments. */
  readonly nodes: GradNode[];
  /** Checkpoints inside the function, in the order in which they ran. */
  readonly inner: Segment[];
}

/** A part of a graph whose results are not kept: the backward pass recomputes them by running its function again. */
export interface Segment {
  /** The segment around this one, and the index of this one in the tape of the outer one. */
  readonly outer: { readonly segment: Segment; readonly index: number } | undefined;
  readonly tape: Tape;
  /** Runs the function again, on the same arguments and random numbers. */
  again(): Tape;
}

/** The place of a node in the tape of its segment. */
export interface Position {
  readonly segment: Segment;
  readonly index: number;
}

interface Open {
  readonly tape: Tape;
  /** Undefined while a function is recomputed: its nodes then form an ordinary graph. */
  readonly segment: Segment | undefined;
}

let open: Open | undefined;
let openDraws: readonly Map<Draws, number>[] = [];

export const openSegment = (): Open | undefined => open;

/** Runs the function of a segment for the first time; `draws` gets the offset from which each generator is drawn. */
export function runOpen<T>(segment: Segment, draws: Map<Draws, number>, fn: () => T): T {
  return during({ tape: segment.tape, segment }, [...openDraws, draws], fn);
}

/**
 * Runs the function of a segment again: generators draw the same numbers and keep their present offsets, and no
 * variable changes.
 */
export function runAgain(draws: ReadonlyMap<Draws, number>, fn: () => unknown): Tape {
  const tape: Tape = { nodes: [], inner: [] };
  const offsets = [...draws.keys()].map((generator) => [generator, generator.offset] as const);
  for (const [generator, offset] of draws) generator.offset = offset;
  try {
    repeating(() => during({ tape, segment: undefined }, [], fn));
  } finally {
    for (const [generator, offset] of offsets) generator.offset = offset;
  }
  return tape;
}

/** Calls a function for the shapes of its results: generators keep their offsets, and no variable changes. */
export function withoutEffect<T>(fn: () => T): T {
  const draws = new Map<Draws, number>();
  try {
    return repeating(() =>
      during({ tape: { nodes: [], inner: [] }, segment: undefined }, [draws], fn),
    );
  } finally {
    for (const [generator, offset] of draws) generator.offset = offset;
  }
}

function during<T>(inside: Open, draws: readonly Map<Draws, number>[], fn: () => T): T {
  const before = [open, openDraws] as const;
  [open, openDraws] = [inside, draws];
  try {
    return fn();
  } finally {
    [open, openDraws] = before;
  }
}

/** Called by generators before they draw. */
export function noteDraw(generator: Draws): void {
  for (const draws of openDraws) if (!draws.has(generator)) draws.set(generator, generator.offset);
}

/** Adds a new node to the tape of the open segment, if any. Returns the node's position there. */
export function enrol(node: GradNode): Position | undefined {
  if (!open) return undefined;
  const index = open.tape.nodes.push(node) - 1;
  return open.segment && { segment: open.segment, index };
}

/** The segments that one backward pass has recomputed. */
export class Recomputations {
  readonly #tapes = new Map<Segment, Tape>();

  /** The node with tensors that exist: a recomputed one where its results were not kept. */
  nodeFor(node: GradNode): GradNode {
    const { position } = node;
    return position ? (this.#tapeOf(position.segment).nodes[position.index] as GradNode) : node;
  }

  #tapeOf(segment: Segment): Tape {
    const known = this.#tapes.get(segment);
    if (known) return known;
    const { outer } = segment;
    // An inner segment starts from the recomputed results of its outer one.
    const source = outer ? this.#tapeOf(outer.segment).inner[outer.index] : segment;
    const tape = (source as Segment).again();
    requireSame(segment.tape, tape);
    this.#tapes.set(segment, tape);
    return tape;
  }
}

function requireSame(first: Tape, again: Tape): void {
  const count = Math.max(first.nodes.length, again.nodes.length);
  for (let i = 0; i < count; i++) {
    const [before, after] = [first.nodes[i], again.nodes[i]];
    if (before && after && labelOf(before) === labelOf(after)) requireUnchanged(before, after);
    else
      throw new RecordingError(
        `checkpoint(): when the backward pass ran the function again, it did ${labelOf(after)} where it had done ${labelOf(before)}. ` +
          "It may depend on its arguments, on variables, and on random numbers of generators; on nothing else that changes.",
      );
  }
  if (first.inner.length !== again.inner.length)
    throw new RecordingError(
      `checkpoint(): the function called checkpoint() ${first.inner.length} times, and ${again.inner.length} times when the backward pass ran it again`,
    );
}

const labelOf = (node: GradNode | undefined): string =>
  node
    ? `${node.op.name} [${node.outputs.map(({ shape, dtype }) => `${dtype} ${shape}`).join("; ")}]`
    : "nothing";

function requireUnchanged(before: GradNode, after: GradNode): void {
  for (const [i, input] of before.inputs.entries()) {
    if (after.inputs[i] !== input) continue;
    const { name = `a tensor [${input.shape}]` } = input as { readonly name?: string };
    if (writeSince(input, before.clock))
      throw new RecordingError(
        `checkpoint(): ${name} was assigned after the function read it, so that it cannot be computed again: call backward() before the assignment`,
      );
  }
}
