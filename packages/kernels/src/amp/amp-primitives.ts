import type { Binding } from "@halfstep/device";
import { elementsIn } from "@halfstep/formats/dtypes";
import { type AmpPrimitives, FLAG_WORDS, type Gradient } from "@halfstep/grad-scaler";
import { countExponents } from "../diagnostics/exponent-histogram.js";
import { allocateResident, type ResidentTarget } from "../resident-target.js";
import { checkFinite, partialsOf, squaresLength } from "./check-finite.js";
import { combineFlags } from "./combine-flags.js";
import { scaleLoss } from "./scale-loss.js";
import { rescale, unscale } from "./unscale.js";
import { gatherFoundInf, launchScaleUpdate } from "./update-scale.js";
import { updateScale } from "./update-scale-by-exponents.js";

/**
 * The primitives from {@link ampPrimitives}: those of `@halfstep/grad-scaler`, where they are documented, without `watchStep`, which
 * needs a recording.
 */
export type KernelAmpPrimitives<B> = Required<
  Omit<AmpPrimitives<B, Binding<B>>, "onRollback" | "requireNoStep" | "watchStep">
> &
  Pick<AmpPrimitives<B, Binding<B>>, "onRollback" | "requireNoStep">;

/**
 * The primitives of loss scaling as launches on a target, so that nothing in a step waits for the device. The scaled
 * loss of a loss buffer is one float32 buffer, which the next scaling of that buffer overwrites.
 *
 * @example
 * const scaler = new GradScaler(ampPrimitives(deviceTarget(device)));
 */
export function ampPrimitives<B extends object>(target: ResidentTarget<B>): KernelAmpPrimitives<B> {
  const { boundTo, ...primitives } = primitivesBy(target, updateScale);
  return {
    ...primitives,
    countExponents(gradients, exponents) {
      for (const gradient of gradients)
        target.launch(countExponents({ x: boundTo(gradient), exponents }));
    },
  };
}

/** The primitives from {@link plainAmpPrimitives}: without `countExponents`. */
export type PlainAmpPrimitives<B> = Omit<KernelAmpPrimitives<B>, "countExponents">;

/**
 * {@link ampPrimitives} without `countExponents`, so without the option `targetUnderflow` of scalers: bundles then lack what only that
 * needs.
 */
export function plainAmpPrimitives<B extends object>(
  target: ResidentTarget<B>,
): PlainAmpPrimitives<B> {
  const { boundTo: _, ...primitives } = primitivesBy(target, launchScaleUpdate);
  return primitives;
}

/** The primitives of both, and the binding of a gradient. `update` launches an update of the scale. */
function primitivesBy<B extends object>(
  target: ResidentTarget<B>,
  update: typeof updateScale<B>,
): PlainAmpPrimitives<B> & { boundTo(gradient: Gradient<B>): Binding<B> } {
  const lengths = new WeakMap<B, number>();
  const scaledLosses = new WeakMap<B, B>();
  /** The largest number of partial sums of any gradient: later ones are 0. */
  const partials = new WeakMap<B, number>();
  let mask: B | undefined;
  const allocate = (length: number): B => {
    const buffer = allocateResident(target, length * 4);
    lengths.set(buffer, length);
    return buffer;
  };
  const floats = (buffer: B, length: number): Binding<B> => ({
    buffer,
    offset: 0,
    length,
    dtype: "float32",
  });
  /** Records the number of partial sums that a launch over `x` uses. */
  const summing = (x: Binding<B>, squares: B | undefined): Binding<B> => {
    if (squares !== undefined)
      partials.set(squares, Math.max(partials.get(squares) ?? 0, partialsOf(x.length)));
    return x;
  };
  return {
    boundTo,
    allocate,
    writeState(state, words) {
      target.write(floats(state, words.length), words);
    },
    scaleLoss(loss, state, { weight, lossFlag }) {
      let buffer = scaledLosses.get(loss.buffer);
      if (buffer === undefined) {
        buffer = allocateResident(target, loss.offset + loss.length * 4);
        scaledLosses.set(loss.buffer, buffer);
      }
      const scaled = floats(buffer, loss.length);
      target.launch(scaleLoss({ loss, state, lossFlag, scaled }, { weight }));
      return scaled;
    },
    check(gradients, foundInf, sum) {
      for (const gradient of gradients) {
        const x = summing(boundTo(gradient), sum?.squares);
        target.launch(checkFinite({ x, foundInf }, sum));
      }
    },
    unscale(gradients, state, foundInf, squares) {
      for (const gradient of gradients) {
        const x = summing(boundTo(gradient), squares);
        target.launch(unscale({ x, state, foundInf, squares }));
      }
    },
    normPartials: squaresLength,
    rescale(gradients, from, to, foundInf) {
      for (const gradient of gradients)
        target.launch(rescale({ x: boundTo(gradient), from, to, foundInf }));
    },
    combine(flags, into) {
      for (const [i, flag] of flags.entries())
        target.launch(combineFlags({ flag, into }, { isFirst: i === 0 }));
    },
    updateScale({ state, lossFlag, outcomes, exponents, foundInfs, squares, ...attributes }) {
      const { rule, newScale, tag } = attributes;
      const [only] = foundInfs;
      let foundInf = only;
      if (foundInf === undefined || foundInfs.length > 1) {
        mask ??= allocate(FLAG_WORDS);
        foundInf = mask;
        for (const [i, flag] of foundInfs.entries())
          target.launch(gatherFoundInf({ foundInf: flag, mask }, i));
      }
      const isMask = foundInf === mask;
      const used = squares === undefined ? 0 : (partials.get(squares) ?? 0);
      const sums =
        squares === undefined || used === 0 ? undefined : { buffer: squares, partials: used };
      target.launch(
        update(
          { state, foundInf, lossFlag, outcomes, squares: sums, exponents },
          { rule, tag, newScale, isMask },
        ),
      );
    },
    async read(buffer) {
      const length = lengths.get(buffer) ?? Math.floor(byteLengthOf(buffer) / 4);
      const values = await target.read(floats(buffer, length), { wait: "background" });
      return Float32Array.from(values);
    },
    ...(target.onRollback && { onRollback: (undo) => target.onRollback?.(undo) }),
    ...(target.requireNoStep && { requireNoStep: (call) => target.requireNoStep?.(call) }),
  };

  function boundTo({ buffer, dtype, offset = 0, length }: Gradient<B>): Binding<B> {
    const own = lengths.get(buffer);
    const bytes = own === undefined ? byteLengthOf(buffer) : own * 4;
    const rest = elementsIn(dtype, bytes - offset);
    return { buffer, offset, length: length ?? rest, dtype };
  }
}

/** Bytes of a `GPUBuffer`, or of anything with a `byteLength`. */
function byteLengthOf(buffer: object): number {
  const { byteLength, size } = buffer as { byteLength?: unknown; size?: unknown };
  if (typeof byteLength === "number") return byteLength;
  if (typeof size === "number") return size;
  throw new TypeError("the length of a gradient is not known: give its `length` in elements");
}
