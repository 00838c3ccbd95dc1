import { dtypes, type SafetensorsDtype } from "../src/dtype.js";
import type { SafetensorsTensor } from "../src/index.js";

/** A tensor of each dtype, of shape [2, 4], called as the dtype, with bytes that differ. */
export const everyDtype = (): Record<string, SafetensorsTensor> =>
  Object.fromEntries(
    (Object.keys(dtypes) as SafetensorsDtype[]).map((dtype, seed) => {
      const { bits, array } = dtypes[dtype];
      const bytes = Uint8Array.from({ length: bits }, (_, i) => (seed * 31 + i * 7) % 251);
      const data = new array(bytes.buffer, 0, bits / array.BYTES_PER_ELEMENT);
      return [dtype, { dtype, shape: [2, 4], data } as SafetensorsTensor];
    }),
  );
