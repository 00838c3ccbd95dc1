import { bytesFor, elementsIn } from "@halfstep/formats/dtypes";
import { shown } from "./checks.js";
import {
  type FlatTensors,
  flatLength,
  leastAlignment,
  orderedSegments,
  type Segment,
  segmentLength,
} from "./flat-tensors.js";

/** The dtypes of values that optimizers update. */
const dtypes: readonly FlatTensors<never>["dtype"][] = ["float32", "float16", "bfloat16"];

/**
 * Checks the layout of flat parameters, which kernels take for granted.
 *
 * @throws TypeError for another dtype, and for a segment without name or shape, or with the name of another. RangeError for segments that
 * overlap or leave their buffer, and for offsets at which kernels cannot read them.
 */
export function requireLayout<B>(params: FlatTensors<B>): void {
  const { dtype, segments, alignment = leastAlignment } = params;
  if (!dtypes.includes(dtype))
    throw new TypeError(
      `parameters are stored as ${shown(dtype)}: optimizers update ${dtypes.join(", ")}`,
    );
  if (!isMultiple(alignment, leastAlignment) || alignment === 0)
    throw new RangeError(
      `the alignment of flat parameters is ${shown(alignment)}: it must be a multiple of ${leastAlignment} elements`,
    );
  const seen = new Set<string>();
  for (const segment of segments) {
    requireSegment(segment, alignment);
    if (seen.has(segment.name))
      throw new TypeError(
        `two parameters of a group are named ${segment.name}: give each a name of its own`,
      );
    seen.add(segment.name);
  }
  requirePlaces(params, alignment);
  const length = flatLength(segments);
  requireRoom("values", params.values, bytesFor(dtype, length));
  requireRoom("gradients", params.gradients, bytesFor("float32", length));
}

/** Throws a RangeError unless each segment starts where a buffer can be bound, so that it can be read alone. */
export function requireBindable<B>(
  { dtype, segments }: Pick<FlatTensors<B>, "dtype" | "segments">,
  why: string,
): void {
  for (const segment of segments) requireStart(segment, dtype, why);
}

function requireSegment(segment: Segment, alignment: number): void {
  const { name, offset, shape } = (segment as Partial<Segment> | null) ?? {};
  if (typeof name !== "string" || !Array.isArray(shape))
    throw new TypeError(
      `a segment of flat parameters is ${shown(segment)}: give { name, offset, shape } of each parameter`,
    );
  const size = shape.find((size) => !isMultiple(size, 1));
  if (size !== undefined)
    throw new RangeError(
      `${name} has the shape ${shown(shape)}: its sizes must be whole numbers of at least 0`,
    );
  if (!isMultiple(offset, alignment))
    throw new RangeError(
      `${name} starts at element ${shown(offset)} of its buffer: an offset must be a multiple of ${alignment}`,
    );
}

/** Checks places in relation to those of other segments. */
function requirePlaces<B>(params: FlatTensors<B>, alignment: number): void {
  const { dtype, hasGradient } = params;
  let before: Segment | undefined;
  let end = 0;
  for (const { segment } of orderedSegments(params.segments)) {
    const { name, offset } = segment;
    if (before && offset < end)
      throw new RangeError(
        `${before.name} and ${name} overlap: ${before.name} ends before element ${end}, and ${name} starts at ${offset}`,
      );
    if (hasGradient)
      requireStart(segment, dtype, "with hasGradient each segment may be read alone");
    else if (!before || offset - end >= alignment)
      requireStart(segment, dtype, "what follows a gap is read alone");
    before = segment;
    end = offset + segmentLength(segment);
  }
}

function requireStart(
  { name, offset }: Segment,
  dtype: FlatTensors<never>["dtype"],
  why: string,
): void {
  const bound = elementsIn(dtype, 256);
  if (!isMultiple(offset, bound))
    throw new RangeError(
      `${name} starts at element ${offset} of its buffer: ${why}, so its offset must be a multiple of ${bound}, which is 256 bytes of ${dtype}`,
    );
}

/** Throws where a buffer that tells its size is too small. */
function requireRoom(what: string, buffer: unknown, needed: number): void {
  const { size, byteLength } = (buffer ?? {}) as { size?: unknown; byteLength?: unknown };
  const bytes = typeof size === "number" ? size : byteLength;
  if (typeof bytes === "number" && bytes < needed)
    throw new RangeError(
      `the segments of flat parameters need ${needed} bytes of ${what}, but the buffer has ${bytes}: make it larger, or check their offsets`,
    );
}

const isMultiple = (value: unknown, of: number): boolean =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value % of === 0;
