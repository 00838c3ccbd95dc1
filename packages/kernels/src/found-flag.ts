import type { Binding, KernelBinding } from "@halfstep/device";
import { FLAG_WORDS } from "@halfstep/grad-scaler";

/** The bits of a set float32 flag: 1. */
export const flagBits = 0x3f80_0000;

/** Sets a float32 flag that a kernel accesses as bits. With float64 arithmetic the CPU stores the number itself. */
export function setFlag(flag: { [index: number]: number } | undefined): void {
  if (flag) flag[0] = flag instanceof Float64Array ? 1 : flagBits;
}

/**
 * The second word of a flag of gradients is {@link seenZeros} where any gradient was checked, and also {@link seenOthers} where one was
 * not 0. The first is a float32: whether any is infinite or NaN.
 */
const seenZeros = 1;
const seenOthers = 2;

/** The flag of gradients as kernels change it. */
export const flagBinding: KernelBinding = {
  name: "foundInf",
  access: "readwrite",
  unit: 1,
  atomic: true,
  dtypes: ["uint32"],
};

/** A binding of the flag of gradients. */
export const flagOf = <B>(buffer: B): Binding<B> => ({
  buffer,
  offset: 0,
  length: FLAG_WORDS,
  dtype: "uint32",
});

/**
 * WGSL that sets the atomic flag `name` by the bits furthest from zero of an invocation. Word 1 is read first, because mostly another
 * invocation has set it.
 */
export const tellGradients = (name: string, worst: string, infinity: string): string => `
  if (${worst} >= ${infinity}) { or_${name}(0u, ${flagBits}u); }
  let seen = select(${seenZeros}u, ${seenZeros | seenOthers}u, ${worst} > 0u);
  if ((at_${name}(1u) & seen) != seen) { or_${name}(1u, seen); }
`;

/** The same on the CPU, for checked values. */
export function tellGradientsOf(
  values: ArrayLike<number>,
  flag: { [index: number]: number } | undefined,
): void {
  if (!flag) return;
  let seen = (flag[1] ?? 0) | seenZeros;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as number;
    if (value !== 0) seen |= seenOthers;
    if (!Number.isFinite(value)) setFlag(flag);
  }
  flag[1] = seen;
}

/** Whether all checked gradients were 0, from word 1 of a flag. */
export const isAllZero = (seen: number): boolean => seen === seenZeros;

/** WGSL: the same. */
export const isAllZeroWgsl = (seen: string): string => `${seen} == ${seenZeros}u`;
