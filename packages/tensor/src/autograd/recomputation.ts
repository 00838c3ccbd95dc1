import { RecordingError } from "../errors.js";
import { repeating } from "../record/repetition.js";
import type { GradNode } from "./grad-node.js";
import { writeSince } from "./versions.js";

/** A generator of random numbers, which goes back to draw the same again. */
export interface Draws {
  /** How much has been drawn. */
  offset: number;
}

/** What one run of a checkpointed function left for a backward pass. */
export interface Tape {
  /** In the order in which they were recorded, but for those of inner segments. */
  readonly nodes: GradNode[];
  /** Checkpoints inside the function, in the order in which they ran. */
  readonly inner: Segment[];
}

/** A stretch of a graph whose results are not kept: the backward pass runs its function again for them. */
export interface Segment {
  /** The segment around it, and its place in that one's tape. */
  readonly outer: { readonly segment: Segment; readonly index: number } | undefined;
  readonly tape: Tape;
  /** Runs the function again, on the same arguments and random numbers. */
  again(): Tape;
}

/** Where a node stands in the tape of its segment. */
export interface Position {
  readonly segment: Segment;
  readonly index: number;
}

interface Open {
  readonly tape: Tape;
  /** Undefined while a function runs again: what it makes then is an ordinary graph. */
  readonly segment: Segment | undefined;
}

let open: Open | undefined;
let openDraws: readonly Map<Draws, number>[] = [];

export const openSegment = (): Open | undefined => open;

/** Runs the function of a segment for the first time; `draws` gets the offset from which each generator is drawn. */
export function runOpen<T>(segment: Segment, draws: Map<Draws, number>, fn: () => T): T {
  return during({ tape: segment.tape, segment }, [...openDraws, draws], fn);
}

/** Runs the function of a segment again, and changes nothing but what it returns. */
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

/** Called for each new node: where it stands, if its results are not kept. */
export function enrol(node: GradNode): Position | undefined {
  if (!open) return undefined;
  const index = open.tape.nodes.push(node) - 1;
  return open.segment && { segment: open.segment, index };
}

/** What one backward pass has computed again. */
export class Recomputations {
  readonly #tapes = new Map<Segment, Tape>();

  /** The node as a backward pass can use it: with tensors that exist. */
  nodeFor(node: GradNode): GradNode {
    const { position } = node;
    return position ? (this.#tapeOf(position.segment).nodes[position.index] as GradNode) : node;
  }

  #tapeOf(segment: Segment): Tape {
    const known = this.#tapes.get(segment);
    if (known) return known;
    const { outer } = segment;
    // An inner segment starts from what its outer one has computed again.
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
