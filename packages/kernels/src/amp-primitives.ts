import { type Binding, bytesPerElement } from "@halfstep/device";
import { checkFinite } from "./check-finite.js";
import { elementwise } from "./elementwise.js";
import { mul } from "./expressions.js";
import { allocateResident, type ResidentTarget } from "./resident-target.js";
import { unscale } from "./unscale.js";
import { gatherFoundInf, type ScaleRuleNumbers, updateScale } from "./update-scale.js";

/** A gradient as `@halfstep/grad-scaler` describes it. */
export interface ScaledGradient<B> {
  readonly buffer: B;
  readonly dtype: "float32" | "float16" | "bfloat16";
  /** Bytes, a multiple of 256; 0 where absent. */
  readonly offset?: number;
  /** Elements; up to the end of the buffer where absent. */
  readonly length?: number;
}

/** What {@link ampPrimitives} makes: `AmpPrimitives<B, Binding<B>>` of `@halfstep/grad-scaler`, which says what each does. */
export interface KernelAmpPrimitives<B> {
  allocate(length: number): B;
  writeState(state: B, words: readonly number[]): void;
  scaleLoss(loss: Binding<B>, state: B): Binding<B>;
  check(gradients: readonly ScaledGradient<B>[], foundInf: B): void;
  unscale(gradients: readonly ScaledGradient<B>[], state: B, foundInf: B): void;
  updateScale(update: {
    readonly state: B;
    readonly foundInfs: readonly B[];
    readonly rule: ScaleRuleNumbers;
    readonly newScale?: number;
    readonly outcomes: B;
    readonly tag: number;
  }): void;
  read(buffer: B): Promise<Float32Array>;
  onRollback?(undo: () => void): void;
}

/**
 * The primitives of loss scaling as launches on a target, so that nothing in a step waits for the device. The scaled
 * loss of a loss buffer is one float32 buffer, which the next scaling of that buffer overwrites.
 *
 * @example
 * const scaler = new GradScaler(ampPrimitives(deviceTarget(device)));
 */
export function ampPrimitives<B extends object>(target: ResidentTarget<B>): KernelAmpPrimitives<B> {
  const lengths = new WeakMap<B, number>();
  const scaledLosses = new WeakMap<B, B>();
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
  const check = (gradients: readonly ScaledGradient<B>[], foundInf: B): void => {
    for (const gradient of gradients) target.launch(checkFinite({ x: bound(gradient), foundInf }));
  };
  return {
    allocate,
    writeState(state, words) {
      target.write(floats(state, words.length), words);
    },
    scaleLoss(loss, state) {
      let buffer = scaledLosses.get(loss.buffer);
      if (buffer === undefined) {
        buffer = allocateResident(target, loss.offset + loss.length * 4);
        scaledLosses.set(loss.buffer, buffer);
      }
      const scaled = floats(buffer, loss.length);
      const shape = [loss.length];
      const scale = { ...floats(state, 1), shape: [] };
      target.launch(elementwise(mul, [{ ...loss, shape }, scale], { ...scaled, shape }));
      return scaled;
    },
    check,
    unscale(gradients, state, foundInf) {
      for (const gradient of gradients)
        target.launch(unscale({ x: bound(gradient), state, foundInf }));
    },
    updateScale({ state, foundInfs, rule, newScale, outcomes, tag }) {
      const [only] = foundInfs;
      let foundInf = only;
      if (foundInf === undefined || foundInfs.length > 1) {
        mask ??= allocate(1);
        foundInf = mask;
        for (const [i, flag] of foundInfs.entries())
          target.launch(gatherFoundInf({ foundInf: flag, mask }, i));
      }
      const isMask = foundInf === mask;
      target.launch(updateScale({ state, foundInf, outcomes }, { rule, tag, newScale, isMask }));
    },
    async read(buffer) {
      const length = lengths.get(buffer) ?? Math.floor(byteLengthOf(buffer) / 4);
      const values = await target.read(floats(buffer, length), { wait: "background" });
      return Float32Array.from(values);
    },
    ...(target.onRollback && { onRollback: (undo) => target.onRollback?.(undo) }),
  };

  function bound({ buffer, dtype, offset = 0, length }: ScaledGradient<B>): Binding<B> {
    const own = lengths.get(buffer);
    const bytes = own === undefined ? byteLengthOf(buffer) : own * 4;
    const rest = Math.floor((bytes - offset) / bytesPerElement(dtype));
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
