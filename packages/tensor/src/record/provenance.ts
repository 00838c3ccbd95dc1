import type { Binding, Launch } from "@halfstep/device";
import { isFloating } from "@halfstep/formats/dtypes";
import { decodeFound, findNonFinite } from "@halfstep/kernels/amp";
import type { OpNote } from "./op-notes.js";
import { type OpSite, siteOf } from "./op-sites.js";
import type { RecordedTensor } from "./recorded-tensor.js";
import type { Recording } from "./recording.js";
import type { Search } from "./searched-steps.js";
import type { Storage } from "./storage.js";

/**
 * The steps in which a runtime searches for the origin of infinite values and NaN: none, those after a step that a scaler skipped, or
 * all. A search adds one launch for each result of an op.
 */
export type ProvenanceMode = "off" | "afterSkip" | "always";

/** The first infinite value or NaN of a step in program order, in a result of an op or in an argument from before the step. */
export interface NonFiniteOrigin extends OpSite {
  /** Index in the flat tensor. */
  readonly element: number;
  readonly kind: "infinity" | "nan";
}

/** The check of a tensor, inserted before the launch at a position. */
interface Look {
  readonly at: number;
  readonly x: Binding<Storage>;
  readonly site: OpSite;
}

/**
 * Adds to a searched recording a check of each result of an op and of each argument that the step did not compute. The results of the
 * step keep their bits.
 *
 * @param allocate allocates memory of the recording, which the recording then keeps.
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
  const start = backwardStart ?? Infinity;
  const recorded = recording.launches.splice(0);
  let next = 0;
  for (let i = 0; i <= recorded.length; i++) {
    if (i === backwardStart) recording.backwardStart = recording.launches.length;
    for (let look = looks[next]; look?.at === i; look = looks[++next])
      recording.append(findNonFinite({ x: look.x, found }, next));
    const launch = recorded[i];
    if (launch) recording.launches.push(launch);
  }
  return { found, sites: looks.map(({ site, at }) => ({ ...site, isBackward: at > start })) };
}

/** The first site with a finding. */
export function originIn({ sites }: Search, codes: ArrayLike<number>): NonFiniteOrigin | undefined {
  for (const [i, { isBackward: _, ...site }] of sites.entries()) {
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
        yield { at: i, x: bindingOf(input), site: siteOf(note, "argument", input) };
      }
    if (noteAt(i + 1) !== note)
      for (const output of note.outputs)
        if (isFloating(output.dtype) && output.size > 0)
          yield {
            at: i + 1,
            x: bindingOf(output),
            site: siteOf(note, "result", output),
          };
  }
}

const bindingOf = ({
  storage: buffer,
  offset,
  size: length,
  dtype,
}: RecordedTensor): Binding<Storage> => ({
  buffer,
  offset,
  length,
  dtype,
});
