import { bytesFor, type DType, floatingDTypes } from "@halfstep/formats/dtypes";
import type { Binding, Kernel, KernelScalar, Launch } from "./launch.js";

/**
 * Throws where a launch does not fit its kernel, with the same error on every target. Without this check WGSL would read zero for a
 * missing value, and JavaScript `undefined`, which becomes NaN.
 *
 * @throws TypeError where bindings or scalars are missing, too many, or of a type that the kernel does not take.
 * @throws RangeError where an integer scalar is not an integer, or out of the range of its type.
 */
export function checkLaunch({ kernel, bindings, scalars }: Launch<unknown>): void {
  checkBindings(kernel, bindings);
  checkScalars(kernel, scalars);
}

/**
 * Throws where bindings share a buffer that one of them writes, as WebGPU forbids. Targets without a GPU apply the same rule, so that what
 * runs on them runs on a GPU.
 *
 * @throws TypeError
 */
export function checkSharing(kernel: Kernel, bindings: readonly Binding<unknown>[]): void {
  for (let i = 1; i < bindings.length; i++)
    for (let j = 0; j < i; j++) {
      const [a, b] = [bindings[i], bindings[j]] as [Binding<unknown>, Binding<unknown>];
      if (a.buffer === b.buffer && !mayShare(kernel, [i, a], [j, b]))
        throw new TypeError(
          `binding "${kernel.bindings[i]?.name}" of kernel "${kernel.name}" shares a buffer with "${kernel.bindings[j]?.name}", which WebGPU forbids where one is written, even for disjoint ranges: use another buffer`,
        );
    }
}

type Placed = readonly [place: number, binding: Binding<unknown>];

/** Both may be read, and both written where they do not overlap. */
function mayShare({ bindings }: Kernel, [i, a]: Placed, [j, b]: Placed): boolean {
  const [isRead, isOtherRead] = [i, j].map((place) => bindings[place]?.access === "read");
  if (isRead !== isOtherRead) return false;
  return isRead || a.offset >= endOf(b) || b.offset >= endOf(a);
}

/** Where the 16 bytes end in which the last element lies. */
const endOf = ({ offset, length, dtype }: Binding<unknown>): number =>
  offset + 16 * Math.max(1, Math.ceil(bytesFor(dtype, length) / 16));

/** Throws unless there is one storage or binding for each binding of the kernel. */
export function checkBindings(
  kernel: Kernel,
  bindings: readonly Pick<Binding<unknown>, "dtype">[],
): void {
  const { accepted } = parametersOf(kernel);
  if (bindings.length !== accepted.length)
    throw new TypeError(
      `kernel "${kernel.name}" has ${accepted.length} bindings (${namesOf(kernel.bindings)}), but got ${bindings.length}`,
    );
  for (let i = 0; i < accepted.length; i++) {
    const dtypes = accepted[i] as readonly DType[];
    const dtype = bindings[i]?.dtype;
    if (dtype === undefined || !dtypes.includes(dtype))
      throw new TypeError(
        `binding "${kernel.bindings[i]?.name}" of kernel "${kernel.name}" is ${dtype}, but takes ${dtypes.join(", ")}: cast it first`,
      );
  }
}

function checkScalars(kernel: Kernel, scalars: Readonly<Record<string, number>>): void {
  const { names, types } = parametersOf(kernel);
  for (let i = 0; i < names.length; i++) {
    const value = scalars[names[i] as string];
    if (!isWithin(types[i] as KernelScalar["type"], value))
      checkScalar(kernel, kernel.scalars[i] as KernelScalar, value);
  }
  let given = 0;
  for (const _ in scalars) given++;
  if (given > names.length) refuseUnknown(kernel, scalars);
}

/** What a kernel declares, in lists that all have the same form: launches are checked in each step, and kernels have many forms. */
interface Parameters {
  /** The dtypes of each binding. */
  readonly accepted: readonly (readonly DType[])[];
  /** The names of the scalars. */
  readonly names: readonly string[];
  readonly types: readonly KernelScalar["type"][];
}

const known = new WeakMap<Kernel, Parameters>();

function parametersOf(kernel: Kernel): Parameters {
  let parameters = known.get(kernel);
  if (!parameters) {
    parameters = {
      accepted: kernel.bindings.map(({ dtypes = floatingDTypes }) => dtypes),
      names: kernel.scalars.map(({ name }) => name),
      types: kernel.scalars.map(({ type }) => type),
    };
    known.set(kernel, parameters);
  }
  return parameters;
}

/** Whether a value is a number of the type of a scalar. */
const isWithin = (type: KernelScalar["type"], value: number | undefined): boolean =>
  typeof value === "number" &&
  (type === "f32" || (type === "u32" ? value >>> 0 : value | 0) === value);

/** Throws unless a value is within the type of the scalar. */
export function checkScalar(
  kernel: Kernel,
  { name, type }: KernelScalar,
  value: number | undefined,
): asserts value is number {
  if (typeof value !== "number")
    throw new TypeError(
      value === undefined
        ? `kernel "${kernel.name}" needs the scalar "${name}" (${type}): add it to \`scalars\``
        : `scalar "${name}" of kernel "${kernel.name}" is a ${typeof value}, but ${type} is a number`,
    );
  if (isWithin(type, value)) return;
  const [low, high] = type === "u32" ? [0, 0xffffffff] : [-0x80000000, 0x7fffffff];
  throw new RangeError(
    `scalar "${name}" of kernel "${kernel.name}" is ${value}, but ${type} holds integers from ${low} to ${high}`,
  );
}

/** Throws a TypeError for a name that is no scalar of the kernel. */
export function refuseUnknown(kernel: Kernel, scalars: Readonly<Record<string, number>>): void {
  const unknown = Object.keys(scalars).find(
    (name) => !kernel.scalars.some((scalar) => scalar.name === name),
  );
  if (unknown !== undefined)
    throw new TypeError(
      `kernel "${kernel.name}" has no scalar "${unknown}": it has ${namesOf(kernel.scalars) || "none"}`,
    );
}

const namesOf = (parameters: readonly { readonly name: string }[]): string =>
  parameters.map(({ name }) => name).join(", ");
