/** What is read from a float32 flag by kernels that change it: 1 where it is set. */
export const flagBits = 0x3f80_0000;

/** Sets a float32 flag that a kernel reaches as bits. With float64 arithmetic the CPU keeps the number itself. */
export function setFlag(flag: { [index: number]: number } | undefined): void {
  if (flag) flag[0] = flag instanceof Float64Array ? 1 : flagBits;
}
