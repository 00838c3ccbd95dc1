import { checkScalar, refuseUnknown } from "./check-launch.js";
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
    packScalar(kernel, scalar, values[scalar.name], target, offset + 4 * i);
  }
}

/** Writes the scalars that `values` names; the others do not change. Throws a TypeError for a name that is no scalar of the kernel. */
export function repackScalars(
  kernel: Kernel,
  values: Scalars,
  target: DataView,
  offset: number,
): void {
  refuseUnknown(kernel, values);
  for (const [i, scalar] of kernel.scalars.entries()) {
    const value = values[scalar.name];
    if (value !== undefined) packScalar(kernel, scalar, value, target, offset + 4 * i);
  }
}

function packScalar(
  kernel: Kernel,
  scalar: KernelScalar,
  value: number | undefined,
  target: DataView,
  at: number,
): void {
  checkScalar(kernel, scalar, value);
  if (scalar.type === "f32") target.setFloat32(at, value, true);
  else target.setUint32(at, value, true);
}
