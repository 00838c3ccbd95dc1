import { checked } from "../arguments/arguments.js";
import * as kinds from "../arguments/kinds.js";
import type { Tensor } from "../tensor/tensor.js";

// Functions whose results have a shape that depends on values. They read the tensor, so they are called between steps and awaited.

/** The result of {@link unique}. */
export interface Unique {
  /** The different elements, the smallest first. */
  readonly values: Tensor;
  /** The place of each element of x among them, as uint32 of x's shape. */
  readonly inverse: Tensor;
  /** The number of occurrences of each, as uint32. */
  readonly counts: Tensor;
}

/** The different elements of x, sorted; every NaN is one of its own, as in torch. It reads x: call it between steps. */
export const unique: (x: Tensor) => Promise<Unique> = checked(
  "unique",
  { x: kinds.tensor },
  async (x: Tensor): Promise<Unique> => {
    const elements = await x.toArray();
    // NaN is larger than every number, as in `sort`.
    const order = Uint32Array.from(elements, (_, i) => i).sort((a, b) => {
      const [u, v] = [elements[a] as number, elements[b] as number];
      return u < v ? -1 : u > v ? 1 : Number(Number.isNaN(u)) - Number(Number.isNaN(v));
    });
    const values: number[] = [];
    const counts: number[] = [];
    const inverse = new Uint32Array(elements.length);
    for (const place of order) {
      const value = elements[place] as number;
      if (value !== values.at(-1)) {
        values.push(value);
        counts.push(0);
      }
      const last = values.length - 1;
      counts[last] = (counts[last] as number) + 1;
      inverse[place] = last;
    }
    return {
      values: x.runtime.tensor(values, [values.length], { dtype: x.dtype }),
      inverse: x.runtime.tensor(inverse, x.shape),
      counts: x.runtime.tensor(Uint32Array.from(counts)),
    };
  },
);

/**
 * The places of the elements that are not 0, as uint32 [places, dimensions of x], in row-major order. It reads x: call it between steps. Within
 * a step use a mask.
 */
export const nonzero: (x: Tensor) => Promise<Tensor> = checked(
  "nonzero",
  { x: kinds.tensor },
  async (x: Tensor): Promise<Tensor> => {
    const elements = await x.toArray();
    const places: number[] = [];
    for (const [i, value] of elements.entries()) {
      if (value === 0) continue;
      let rest = i;
      const place = x.shape.toReversed().map((size) => {
        const index = rest % size;
        rest = Math.floor(rest / size);
        return index;
      });
      places.push(...place.reverse());
    }
    const count = elements.filter((value) => value !== 0).length;
    return x.runtime.tensor(Uint32Array.from(places), [count, x.rank]);
  },
);
