import type { DType, HalfDType } from "@halfstep/device";
import { bytesFor, isFloat8, isInteger } from "@halfstep/formats/dtypes";
import type { GradientMark } from "@halfstep/grad-scaler";
import { argumentCheck } from "../arguments/arguments.js";
import { noGrad } from "../autograd/grad-mode.js";
import { marksOf, unknownMarks } from "../autograd/scale-marks.js";
import { ClosedTensorError, RecordingError } from "../errors.js";
import * as ops from "../ops/index.js";
import { HalfCopies } from "../record/half-copies.js";
import type { Storage } from "../record/storage.js";
import { unnamed, type Variable } from "./tensor.js";

/** Variables packed into one buffer, and their gradients in another: `FlatTensors<Storage>` of `@halfstep/optim`. */
export interface FlatVariables {
  readonly values: Storage;
  /** float32, whatever `dtype` is. */
  readonly gradients: Storage;
  readonly dtype: "float32" | HalfDType;
  readonly segments: readonly {
    readonly name: string;
    /** Elements from the start of either buffer. */
    readonly offset: number;
    readonly shape: readonly number[];
  }[];
  /** Segments start at multiples of so many elements, with zeros behind the end of each. */
  readonly alignment: number;
  /**
   * Whether `backward()` has left a gradient in a segment since the last `zeroGrad()`.
   * @throws ClosedTensorError where its variable is disposed: `half()` replaces variables
   */
  hasGradient(segment: number): boolean;
  /** A number that changes with each step or assignment that writes values. */
  valuesVersion(): number;
  /** The marks of the loss scales that the gradient of a segment carries; empty where nothing is known. For scalers. */
  gradientMarks(segment: number): ReadonlySet<GradientMark>;
  /** Replaces the marks of every present gradient by one mark. */
  markGradients(mark: GradientMark): void;
  /** Makes all gradients absent, so that the next `backward()` assigns them anew. */
  zeroGrad(): void;
}

/** Segments start at multiples of so many elements: each can then be bound alone, also in 16-bit values and copies. */
const step = 128;

const paddedSize = ({ size }: Variable): number => Math.ceil(size / step) * step;

const flattened = new WeakSet<Variable>();

const isVariable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "moveTo" in value;

const checkFlatten = argumentCheck("flatten", {
  variables: {
    what: "a list of variables, such as model.parameters()",
    accepts: (given) =>
      typeof given === "object" &&
      given !== null &&
      Symbol.iterator in given &&
      (!Array.isArray(given) || given.every(isVariable)),
  },
});

/** The names of segments: with several variables that have no name of their own, their places in the list, as torch numbers parameters. */
function namesOf(variables: readonly Variable[]): readonly string[] {
  const names = variables.map(({ name }) => name);
  const isNumbered = names.indexOf(unnamed) !== names.lastIndexOf(unnamed);
  return isNumbered ? names.map((name, i) => (name === unnamed ? String(i) : name)) : names;
}

/**
 * Moves variables into one flat buffer, and their gradients into another, so that an optimizer steps them all with one
 * launch. The variables become views of the buffer and stay as usable as before, and gradients that are present stay present. Results of
 * `detach()` and `reshape()` from before keep the old values. A variable that appears twice (tied weights) has one segment; one that is in
 * a flat buffer already is refused, since two optimizers would move it. Several variables without names get their places in the list as
 * names of their state: "0", "1" and so on.
 *
 * Call it outside steps. All variables have one runtime and one floating dtype.
 *
 * @throws ArgumentError for what is no list of variables. RecordingError inside a step, and for a variable that is flat already.
 * RangeError where variables do not fit together, or have more float32 gradients than the device binds at a time.
 */
export function flatten(variables: Iterable<Variable>): FlatVariables {
  checkFlatten([variables]);
  const unique = [...new Set(variables)];
  const [first] = unique;
  if (!first) throw new RangeError("flatten() got no variables: pass model.parameters()");
  const { runtime, dtype } = first;
  runtime.recorder.requireNoStep("flatten()");
  if (isInteger(dtype) || isFloat8(dtype))
    throw new RangeError(
      `flatten() packs variables of float32, float16 or bfloat16, and ${first.name} is ${dtype}`,
    );
  let length = 0;
  const names = namesOf(unique);
  const segments = unique.map((variable, i) => {
    if (variable.runtime !== runtime)
      throw new RangeError(
        `flatten(): ${first.name} and ${variable.name} belong to different runtimes: pack each runtime's into a group of its own`,
      );
    if (variable.dtype !== dtype)
      throw new RangeError(
        `flatten(): ${first.name} is ${dtype} and ${variable.name} is ${variable.dtype}: pack each dtype into a group of its own, as flattenByDType() does`,
      );
    if (flattened.has(variable))
      throw new RecordingError(
        `parameter ${variable.name} is in an optimizer already: two optimizers would both move it`,
      );
    const offset = length;
    length = offset + paddedSize(variable);
    return { name: names[i] as string, offset, shape: variable.shape };
  });
  const most = runtime.target.maxBindingBytes ?? Number.POSITIVE_INFINITY;
  if (length * 4 > most)
    throw new RangeError(
      `flatten(): ${unique.length === 1 ? `${first.name} has` : `${unique.length} variables have`} ${length * 4} bytes of float32 gradients, but this device binds at most ${most} at a time: ` +
        (unique.length === 1
          ? "divide it into several variables"
          : "flattenByDType() makes several groups of them"),
    );
  const values = runtime.target.allocateResident(bytesFor(dtype, length));
  const gradients = runtime.target.allocateResident(length * 4);
  gradients.partStep = step * 4;
  if (dtype === "float32")
    values.halfCopies = new HalfCopies({ buffer: values, offset: 0, length, dtype }, true);
  noGrad(() => {
    for (const [i, variable] of unique.entries()) {
      const offset = segments[i]?.offset ?? 0;
      const place = { storage: values, offset: bytesFor(dtype, offset) };
      const copy = runtime.variableAt(place, variable.shape, dtype, variable.name);
      ops.assign(copy, variable, undefined);
      variable.moveTo(place);
      copy.dispose();
      variable.placeGradient({ storage: gradients, offset: offset * 4 }, `${variable.name}.grad`);
      flattened.add(variable);
    }
  });
  return {
    values,
    gradients,
    dtype,
    segments,
    alignment: step,
    hasGradient(segment) {
      const variable = unique[segment];
      // A disposed variable would never get a gradient, and training would continue without it.
      if (variable?.isDisposed)
        throw new ClosedTensorError(
          `${variable.name} is not the model's any more: it was disposed after flatten(), as half() and applyRecipe() do with what they store anew. Call them before flatten()`,
        );
      return variable?.grad !== undefined;
    },
    valuesVersion: () => values.version,
    gradientMarks: (segment) => unique[segment]?.gradientMarks ?? unknownMarks,
    markGradients(mark) {
      const marks = marksOf(mark);
      for (const variable of unique) variable.markGradient(marks);
    },
    zeroGrad() {
      for (const variable of unique) variable.zeroGrad();
    },
  };
}

/**
 * {@link flatten} for variables of several dtypes (a half model with float32 batch norm): one flat buffer for each dtype. It makes several
 * where the device cannot bind all of its gradients at a time. With the least limit of WebGPU that is above 2²⁵ parameters.
 */
export function flattenByDType(variables: Iterable<Variable>): readonly FlatVariables[] {
  checkFlatten([variables]);
  const byDType = new Map<DType, Variable[]>();
  for (const variable of new Set(variables)) {
    const same = byDType.get(variable.dtype);
    if (same) same.push(variable);
    else byDType.set(variable.dtype, [variable]);
  }
  return [...byDType.values()].flatMap(bindableParts).map(flatten);
}

/** Consecutive variables in parts whose float32 gradients the device can bind at a time. */
function bindableParts(variables: readonly Variable[]): Variable[][] {
  const parts: Variable[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const variable of variables) {
    const most = variable.runtime?.target.maxBindingBytes ?? Number.POSITIVE_INFINITY;
    bytes += paddedSize(variable) * 4;
    if (bytes > most || parts.length === 0) {
      parts.push([]);
      bytes = paddedSize(variable) * 4;
    }
    parts.at(-1)?.push(variable);
  }
  return parts;
}
