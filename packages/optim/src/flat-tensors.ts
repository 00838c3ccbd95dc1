import type { Binding } from "@halfstep/device";
import { bytesFor, elementsIn } from "@halfstep/formats/dtypes";
import type { GradientMark } from "@halfstep/grad-scaler";
import { allocateResident, type ResidentTarget } from "@halfstep/kernels";
import type { Shard } from "./shard.js";

/** The place of one parameter in a flat buffer. */
export interface Segment {
  readonly name: string;
  /**
   * Elements from the start of the buffer; the same in values, gradients and optimizer state. A multiple of 4, and of
   * {@link FlatTensors.alignment}. The first segment, and one behind a gap, start at a multiple of 256 bytes, too: of 64 elements of float32,
   * and of 128 of 16-bit values. All do where there is `hasGradient`, and in Muon. Segments may not overlap.
   */
  readonly offset: number;
  readonly shape: readonly number[];
}

/** The alignment of segments where nothing else is said: kernels store whole quads. */
export const leastAlignment = 4;

/** Parameters packed into one buffer, with their gradients in another: one launch updates them all. */
export interface FlatTensors<B> {
  readonly values: B;
  /** float32, whatever `dtype` is. */
  readonly gradients: B;
  /** Storage of `values`. */
  readonly dtype: "float32" | "float16" | "bfloat16";
  readonly segments: readonly Segment[];
  /**
   * Segments start at multiples of so many elements. From the end of a segment to the next such multiple there is padding, which steps
   * may overwrite and which should be zeros: it is included in norms and in checks for infinite gradients. What lies in larger gaps is
   * not touched, but each gap takes launches of its own. Default 4, the least.
   */
  readonly alignment?: number;
  /** Whether a segment, by index, has a gradient in this step. A step skips segments without one. Absent: all have one. */
  hasGradient?(segment: number): boolean;
  /** Makes all gradients absent, where that is cheaper than zeros. */
  zeroGrad?(): void;
  /**
   * A number that changes with each write of values. By it an optimizer with masters detects writes by others. Absent: call
   * `reloadMasters()` after such writes.
   */
  valuesVersion?(): number;
  /** The marks of the loss scales that the gradient of a segment carries, by index; empty, or absent, if unknown. */
  gradientMarks?(segment: number): ReadonlySet<GradientMark>;
  /** Replaces the marks of every present gradient by one mark. */
  markGradients?(mark: GradientMark): void;
  /** The part that an optimizer steps, where several optimizers divide the parameters. Absent: all. */
  readonly shard?: Shard<B>;
}

/** A part of a flat buffer, in elements. */
export interface Range {
  readonly offset: number;
  readonly length: number;
}

/**
 * Allocates zeroed buffers for parameters of these shapes, in order. Every segment starts at a multiple of 256 bytes, so
 * that it can be bound alone.
 *
 * @example
 * const flat = flatTensors(target, { weight: [10, 784], bias: [10] });
 */
export function flatTensors<B>(
  target: ResidentTarget<B>,
  shapes: Readonly<Record<string, readonly number[]>>,
  { dtype = "float32" }: { readonly dtype?: FlatTensors<B>["dtype"] } = {},
): FlatTensors<B> {
  const alignment = elementsIn(dtype, 256);
  const segments: Segment[] = [];
  let offset = 0;
  for (const [name, shape] of Object.entries(shapes)) {
    const segment = { name, offset, shape };
    segments.push(segment);
    offset = Math.ceil((offset + segmentLength(segment)) / alignment) * alignment;
  }
  const length = flatLength(segments);
  return {
    values: allocateResident(target, bytesFor(dtype, length)),
    gradients: allocateResident(target, length * 4),
    dtype,
    segments,
    alignment,
  };
}

/** Number of elements of a parameter. */
export const segmentLength = ({ shape }: Segment): number => shape.reduce((n, size) => n * size, 1);

/** Elements of a flat buffer: up to the end of its last segment. */
export const flatLength = (segments: readonly Segment[]): number => placesOf(segments).length;

/** The values of a flat buffer. */
export const valuesOf = <B>({ values, dtype, segments }: FlatTensors<B>): Binding<B> => ({
  buffer: values,
  offset: 0,
  length: flatLength(segments),
  dtype,
});

/** The gradients of a flat buffer. */
export const gradientsOf = <B>({ gradients, segments }: FlatTensors<B>): Binding<B> => ({
  buffer: gradients,
  offset: 0,
  length: flatLength(segments),
  dtype: "float32",
});

/** A part of a binding of a flat buffer. */
export const partOf = <B>(binding: Binding<B>, { offset, length }: Range): Binding<B> => ({
  ...binding,
  offset: binding.offset + bytesFor(binding.dtype, offset),
  length,
});

/** Segments in the order of their offsets, with their indices in the list of segments. */
export const orderedSegments = (
  segments: readonly Segment[],
): readonly { readonly segment: Segment; readonly index: number }[] =>
  segments
    .map((segment, index) => ({ segment, index }))
    .sort((a, b) => a.segment.offset - b.segment.offset);

/** A part of a flat buffer, and its segments, numbered by their offsets. */
export interface SegmentRange extends Range {
  readonly firstSegment: number;
  readonly endSegment: number;
}

interface Places {
  /** Segments in the order of their offsets. */
  readonly ordered: readonly {
    readonly index: number;
    readonly offset: number;
    readonly end: number;
  }[];
  readonly length: number;
}

const knownPlaces = new WeakMap<readonly Segment[], Places>();

/** The starts and ends of segments, computed once because each step uses them several times. */
function placesOf(segments: readonly Segment[]): Places {
  let places = knownPlaces.get(segments);
  if (!places) {
    const ordered = orderedSegments(segments).map(({ segment, index }) => ({
      index,
      offset: segment.offset,
      end: segment.offset + segmentLength(segment),
    }));
    places = { ordered, length: ordered.reduce((most, { end }) => Math.max(most, end), 0) };
    knownPlaces.set(segments, places);
  }
  return places;
}

/** The parts that have gradients: one part where all segments do, and only padding lies between them. */
export const presentRanges = <B>(params: FlatTensors<B>): readonly SegmentRange[] =>
  rangesOf(params, (index) => params.hasGradient?.(index) ?? true);

/** The parts of all segments, whether they have gradients or not. */
export const segmentRanges = <B>(params: FlatTensors<B>): readonly SegmentRange[] =>
  rangesOf(params, () => true);

function rangesOf<B>(
  { segments, alignment = leastAlignment }: FlatTensors<B>,
  isPresent: (index: number) => boolean,
): readonly SegmentRange[] {
  const ranges: { -readonly [key in keyof SegmentRange]: SegmentRange[key] }[] = [];
  let last: (typeof ranges)[number] | undefined;
  const { ordered } = placesOf(segments);
  for (let place = 0; place < ordered.length; place++) {
    const { index, offset, end } = ordered[place] as Places["ordered"][number];
    if (!isPresent(index)) last = undefined;
    else if (last && offset - (last.offset + last.length) < alignment) {
      last.length = end - last.offset;
      last.endSegment = place + 1;
    } else {
      last = { offset, length: end - offset, firstSegment: place, endSegment: place + 1 };
      ranges.push(last);
    }
  }
  return ranges;
}
