import type { Binding, Launch } from "@halfstep/device";
import { decodeFound, findNonFinite } from "@halfstep/kernels";
import { isFloating } from "./cast.js";
import type { OpNote } from "./op-notes.js";
import type { Recording } from "./recording.js";
import type { Storage } from "./storage.js";
import type { Tensor } from "./tensor.js";

/**
 * When a runtime looks for the origin of values that are infinite or NaN, at the price of one more launch for each result of
 * an op: never, in steps after a scaler has reported a skipped one, or in every step.
 */
export type ProvenanceMode = "off" | "afterSkip" | "always";

/** The first value of a step, in program order, that was infinite or NaN. */
export interface NonFiniteOrigin {
  /** The op that made it. In a backward pass also the op whose gradient that is: "matmul in the backward of linear". */
  readonly op: string;
  /** The tensor that holds it: a result of the op, or an argument that was not finite before the step. */
  readonly tensor: string;
  /** Path of the module that applied the op; absent where none did. */
  readonly module?: string;
  /** Index in the flat tensor. */
  readonly element: number;
  readonly kind: "infinity" | "nan";
}

type Site = Pick<NonFiniteOrigin, "op" | "tensor" | "module">;

/** What a searched step leaves: a code for each place that was looked at. */
export interface Search {
  readonly found: Binding<Storage>;
  readonly sites: readonly Site[];
}

/** Steps that are searched after a skip, unless an origin is found before. */
const stepsAfterSkip = 100;

/** Searches that are kept. Outcomes of steps are read later than that only where nobody reads them. */
const keptSearches = 64;

/** Decides which steps are searched, and keeps what was found in the latest. */
export class Provenance {
  readonly #mode: ProvenanceMode;
  readonly #drop: (search: Search) => void;
  readonly #searches: Search[] = [];
  #stepsLeft = 0;

  /** @param drop called with a search that is kept no longer. */
  constructor(mode: ProvenanceMode, drop: (search: Search) => void) {
    if (mode !== "off" && mode !== "afterSkip" && mode !== "always")
      throw new TypeError(
        `provenance is ${JSON.stringify(mode)}: it must be "off", "afterSkip" or "always"`,
      );
    this.#mode = mode;
    this.#drop = drop;
  }

  /** The search of the last searched step. */
  get latest(): Search | undefined {
    return this.#searches.at(-1);
  }

  /** Whether a search is still kept. */
  has(search: Search): boolean {
    return this.#searches.includes(search);
  }

  /** Makes the recording of a step note its ops, if the step is to be searched. */
  begin(recording: Recording): void {
    if (this.#mode === "off" || (this.#mode === "afterSkip" && this.#stepsLeft === 0)) return;
    this.#stepsLeft = Math.max(0, this.#stepsLeft - 1);
    recording.notes ??= new Map();
    recording.isSearched = true;
  }

  /** Keeps the search of a step that has been submitted, and tells those who wait for it. */
  publish(search: Search, { searchListeners }: Recording): void {
    search.found.buffer.handles++;
    this.#searches.push(search);
    const oldest = this.#searches.length > keptSearches ? this.#searches.shift() : undefined;
    if (oldest) this.#drop(oldest);
    for (const listener of searchListeners) listener(search);
  }

  /** To be told of each skipped step, and whether its origin was found. */
  stepSkipped(isExplained: boolean): void {
    if (this.#mode === "afterSkip") this.#stepsLeft = isExplained ? 0 : stepsAfterSkip;
  }
}

/** A look at a tensor, before the launch at a position. */
interface Look {
  readonly at: number;
  readonly x: Binding<Storage>;
  readonly site: Site;
}

/**
 * Adds to a recording that is to be searched a look at each of their results, and at their arguments that the step did not
 * make. Whatever the step computes stays the same bits.
 *
 * @param allocate memory of the recording, which it then keeps.
 */
export function insertSearch(
  recording: Recording,
  allocate: (bytes: number) => Storage,
): Search | undefined {
  const looks = recording.isSearched ? [...looksOf(recording)] : [];
  if (looks.length === 0) return undefined;
  const length = looks.length;
  const found: Binding<Storage> = {
    buffer: allocate(length * 4),
    offset: 0,
    length,
    dtype: "uint32",
  };
  recording.kept.add(found.buffer);
  const { backwardStart } = recording;
  const recorded = recording.launches.splice(0);
  let next = 0;
  for (let i = 0; i <= recorded.length; i++) {
    if (i === backwardStart) recording.backwardStart = recording.launches.length;
    for (let look = looks[next]; look?.at === i; look = looks[++next])
      recording.append(findNonFinite({ x: look.x, found }, next));
    const launch = recorded[i];
    if (launch) recording.launches.push(launch);
  }
  return { found, sites: looks.map(({ site }) => site) };
}

/** The first place where something was found. */
export function originIn({ sites }: Search, codes: ArrayLike<number>): NonFiniteOrigin | undefined {
  for (const [i, site] of sites.entries()) {
    const found = decodeFound(codes[i] as number);
    if (found) return { ...site, ...found };
  }
  return undefined;
}

function* looksOf({ launches, notes }: Recording): Generator<Look> {
  const seen = new Set<string>();
  const noteAt = (i: number): OpNote | undefined => notes?.get(launches[i] as Launch<Storage>);
  for (let i = 0; i < launches.length; i++) {
    const note = noteAt(i);
    if (!note) continue;
    if (noteAt(i - 1) !== note)
      for (const input of note.inputs) {
        const { storage, dtype, size } = input;
        const key = `${storage.id}+${input.offset}:${size}`;
        const isGiven = storage.isResident || storage.hostData !== undefined;
        if (!isGiven || !isFloating(dtype) || size === 0 || seen.has(key)) continue;
        seen.add(key);
        yield { at: i, x: bindingOf(input), site: siteOf(note, `argument ${describe(input)}`) };
      }
    if (noteAt(i + 1) !== note)
      for (const output of note.outputs)
        if (isFloating(output.dtype) && output.size > 0)
          yield {
            at: i + 1,
            x: bindingOf(output),
            site: siteOf(note, `result ${describe(output)}`),
          };
  }
}

const bindingOf = ({ storage: buffer, offset, size: length, dtype }: Tensor): Binding<Storage> => ({
  buffer,
  offset,
  length,
  dtype,
});

function siteOf({ op, scope }: OpNote, tensor: string): Site {
  const module = scope?.path() ?? "";
  return {
    op: scope?.backwardOf ? `${op} in the backward of ${scope.backwardOf}` : op,
    tensor,
    ...(module !== "" && { module }),
  };
}

function describe(tensor: Tensor): string {
  const { name } = tensor as { readonly name?: string };
  return `${name ? `${name}, ` : ""}${tensor.dtype} [${tensor.shape.join(", ")}]`;
}
