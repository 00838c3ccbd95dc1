import type { Kernel, KernelScalar } from "./launch.js";

type Scalars = Readonly<Record<string, number>>;

/** Bytes of the uniform struct of a kernel's scalars: 4 each, padded to 16. 0 when there are none. */
export const scalarBytes = (kernel: Kernel): number => Math.ceil(kernel.scalars.length / 4) * 16;

/** Writes every scalar of a kernel at `offset`, in order. */
export function packScalars(
  kernel: Kernel,
  values: Scalars,
  target: DataView,
  offset: number,
): void {
  for (const [i, scalar] of kernel.scalars.entries()) {
    const value = values[scalar.name];
    if (value === undefined)
      throw new TypeError(
        `kernel "${kernel.name}" needs the scalar "${scalar.name}" (${scalar.type}): add it to \`scalars\``,
      );
    packScalar(kernel, scalar, value, target, offset + 4 * i);
  }
}

/** Writes the scalars that `values` names and leaves the others as they are. */
export function repackScalars(
  kernel: Kernel,
  values: Scalars,
  target: DataView,
  offset: number,
): void {
  for (const [i, scalar] of kernel.scalars.entries()) {
    const value = values[scalar.name];
    if (value !== undefined) packScalar(kernel, scalar, value, target, offset + 4 * i);
  }
}

function packScalar(
  kernel: Kernel,
  { name, type }: KernelScalar,
  value: number,
  target: DataView,
  at: number,
): void {
  if (type === "f32") {
    target.setFloat32(at, value, true);
    return;
  }
  const [low, high] = type === "u32" ? [0, 0xffffffff] : [-0x80000000, 0x7fffffff];
  if (!Number.isInteger(value) || value < low || value > high)
    throw new RangeError(
      `scalar "${name}" of kernel "${kernel.name}" is ${value}, but ${type} holds integers from ${low} to ${high}`,
    );
  target.setUint32(at, value, true);
}
