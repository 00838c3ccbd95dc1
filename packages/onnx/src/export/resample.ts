import { type Resample, structuredOps } from "@halfstep/tensor/internals";
import { dataType } from "../data-type.js";
import type { Emission } from "./emission.js";
import type { Attributes } from "./graph-builder.js";
import { constantSize, isConstant, type Size } from "./size.js";
import type { ModelTrace, TracedOp } from "./trace-model.js";
import { plain } from "./values.js";

/** How Resize says what a mode of resampling is. */
const resizing: Readonly<Record<Resample["mode"], Attributes>> = {
  nearest: {
    ...{ mode: "nearest", nearest_mode: "floor" },
    coordinate_transformation_mode: "asymmetric",
  },
  nearestExact: {
    ...{ mode: "nearest", nearest_mode: "round_prefer_ceil" },
    coordinate_transformation_mode: "half_pixel",
  },
  linear: { mode: "linear", coordinate_transformation_mode: "half_pixel" },
  linearCorners: { mode: "linear", coordinate_transformation_mode: "align_corners" },
  cubic: { mode: "cubic", coordinate_transformation_mode: "half_pixel" },
  cubicCorners: { mode: "cubic", coordinate_transformation_mode: "align_corners" },
};

/**
 * The ops of a trace, with the axes of one image in one op, whose attributes are lists: the trace has an op for each axis, in an order that
 * depends on their sizes.
 */
export function joinResamples({ ops, results }: ModelTrace): readonly TracedOp[] {
  const uses = new Map<number, number>();
  for (const value of [...ops.flatMap(({ inputs }) => inputs), ...results.map((r) => r.value)])
    uses.set(value, (uses.get(value) ?? 0) + 1);
  const joined: TracedOp[] = [];
  for (const op of ops) {
    const before = joined.at(-1);
    if (op.definition !== structuredOps.resample) joined.push(op);
    else if (before?.definition === op.definition && isOneImage(before, op, uses))
      joined[joined.length - 1] = {
        ...op,
        inputs: before.inputs,
        attributes: before.attributes.map((list, t) => [
          ...(list as readonly Resample[]),
          op.attributes[t] as Resample,
        ]),
      };
    else joined.push({ ...op, attributes: op.attributes.map((each) => [each]) });
  }
  return joined;
}

/** Whether an op resamples further axes of what another one gives, which nothing else reads. */
function isOneImage(before: TracedOp, op: TracedOp, uses: ReadonlyMap<number, number>): boolean {
  const [between] = before.outputs as [number];
  return (
    op.inputs[0] === between &&
    uses.get(between) === 1 &&
    op.attributes.every((each, t) => {
      const { axis, mode } = each as Resample;
      const list = before.attributes[t] as readonly Resample[];
      return list.every((other) => other.axis !== axis && other.mode === mode);
    })
  );
}

/** How an axis is resampled. */
interface ResampledAxis {
  readonly axis: number;
  readonly size: Size;
  /** What Resize multiplies every size by; undefined where that depends on the size. */
  readonly scale: number | undefined;
  /** Whether places follow from the sizes before and after. */
  readonly isBySize: boolean;
  /** Whether it may become shorter. */
  readonly shrinks: boolean;
}

/** Resamples axes of an image: all at once, or one after the other where Resize takes scales for some and sizes for others. */
export function emitResample(emission: Emission): void {
  const shape = emission.shapeOf();
  const order = [0, shape.length - 1, ...plain(shape.length).slice(1, -1)];
  const { type } = emission.input(0);
  const [first] = emission.everyAttributes<readonly Resample[]>() as [readonly Resample[]];
  const [{ mode }] = first as [Resample];
  const axes = first.map(({ axis }) => resampledAxis(emission, axis, mode));
  const nodes = isJoint(axes) ? [axes] : axes.map((axis) => [axis]);
  if (!nodes.every(isJoint)) throw emission.changing();
  // ONNX Runtime 1.30 moves a transposition behind Resize, and refuses cubic ones that then shrink an image of which the channels come last. It
  // moves none past a Reshape.
  const isFlat = mode.startsWith("cubic") && axes.some(({ shrinks }) => shrinks);
  const dimensions = order.map((d) => emission.input(0).shape[d] as Size);
  const [batch, channels] = dimensions as [Size, Size];
  const flat = [constantSize(1), product(batch, channels), ...dimensions.slice(2)];
  const sizes = isFlat ? flat : dimensions;
  let x = emission.take(0, { order });
  if (isFlat) x = emission.node("Reshape", [x, emission.integers([1, -1, 0, 0])]);
  for (const each of nodes) {
    for (const { axis, size } of each) sizes[order.indexOf(axis)] = size;
    const scaleOf = (d: number): number => each.find(({ axis }) => axis === d)?.scale ?? 1;
    const isScaled = each.every(({ scale }) => Number.isInteger(scale)) || !isSized(each);
    const inputs = isScaled
      ? [x, undefined, emission.builder.constant(dataType.FLOAT, order.map(scaleOf))]
      : [x, undefined, undefined, emission.sizes(sizes)];
    x = emission.node("Resize", inputs, resizing[mode]);
  }
  if (isFlat) x = emission.node("Reshape", [x, emission.sizes([opened(batch), channels, ...kept])]);
  emission.result(x, { type, order });
}

/** The sizes of images that Reshape leaves. */
const kept = [constantSize(0), constantSize(0)];

/** A size that follows from the others, where it is no constant. */
const opened = (size: Size): Size => (isConstant(size) ? size : constantSize(-1));

/** The product of two sizes. */
const product = (a: Size, b: Size): Size => ({
  factor: a.factor * b.factor,
  axes: [...a.axes, ...b.axes],
  isKnown: a.isKnown && b.isKnown,
});

const isSized = (axes: readonly ResampledAxis[]): boolean => axes.every(({ isBySize }) => isBySize);

/** Whether one node resamples the axes. */
const isJoint = (axes: readonly ResampledAxis[]): boolean =>
  isSized(axes) || axes.every(({ scale }) => scale !== undefined);

function resampledAxis(emission: Emission, axis: number, mode: Resample["mode"]): ResampledAxis {
  const traces = emission.everyAttributes<readonly Resample[]>().map((list) => {
    const own = list.find((each) => each.axis === axis && each.mode === mode);
    if (!own) throw emission.changing();
    return own;
  });
  const size = emission.shapeOf()[axis] as Size;
  const scale = scaleIn(traces);
  const isBySize = size.isKnown && traces.every(({ ratio }) => !ratio);
  const shrinks = scale === undefined || traces.some((each) => each.newSize < each.size);
  return { axis, size, scale, isBySize, shrinks };
}

/** The float32 by which runtimes multiply the size before to get that after, in every trace. */
function scaleIn(traces: readonly Resample[]): number | undefined {
  const scales = traces.map(
    ({ size, newSize, ratio: [unit, step] = [newSize, size] }) => unit / step,
  );
  const [scale] = scales as [number];
  if (scales.some((other) => Math.abs(other - scale) > 2 ** -21 * scale)) return undefined;
  const near = Math.fround(scale);
  return [near, near * (1 + 2 ** -23), near * (1 - 2 ** -23)]
    .map(Math.fround)
    .find((each) =>
      traces.every(({ size, newSize }) => Math.floor(Math.fround(each * size)) === newSize),
    );
}
