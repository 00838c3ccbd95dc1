import type { Binding, HalfDType, Launch } from "@halfstep/device";
import { packHalves, packHeaderWords, packScratchWords } from "@halfstep/kernels/optimizers";

/** Gradients that the device packs in 16 bits. */
export interface PackedGradients<B> {
  readonly before: readonly Launch<B>[];
  readonly codes: Binding<B>;
  /** The power of two by which they were multiplied, and 1 where one was infinite or NaN. */
  readonly header: Binding<B>;
}

/** Packs gradients, in memory of the step. */
export function packed<B>(
  x: Binding<B>,
  format: HalfDType,
  allocate: (bytes: number) => B,
): PackedGradients<B> {
  const { length } = x;
  const codes = { buffer: allocate(length * 2), ...{ offset: 0, length, dtype: format } };
  const header = allocate(packHeaderWords * 4);
  const scratch = allocate(packScratchWords * 4);
  return {
    before: packHalves({ x, codes, header, scratch }),
    codes,
    header: { buffer: header, offset: 0, length: packHeaderWords, dtype: "uint32" },
  };
}
