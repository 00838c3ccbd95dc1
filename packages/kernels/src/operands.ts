import type { Binding } from "@halfstep/device";
import { shown } from "./attributes.js";
import { domainOf } from "./domain.js";

/** Throws a TypeError unless a launcher is given a target first. */
export function requireTarget(
  op: string,
  target: { readonly launch?: unknown } | null | undefined,
): void {
  if (typeof target?.launch !== "function")
    throw new TypeError(
      `${op} takes a target first, not ${shown(target)}: pass cpuTarget(), deviceTarget(device) or the target of a runtime`,
    );
}

/** Throws a TypeError unless elements can be moved to `out` without a conversion between integers and floats, and none is missing. */
export function requireSameKind<B>(
  op: string,
  inputs: readonly Binding<B>[],
  out: Binding<B>,
): void {
  for (const input of inputs) {
    if (!input || !out) throw new TypeError(`${op}: an operand is missing: bind a buffer to each`);
    const { dtype } = input;
    if (dtype !== out.dtype && domainOf(dtype) !== domainOf(out.dtype))
      throw new TypeError(
        `${op} moves elements without converting them, and cannot make ${out.dtype} of ${dtype}: cast the input first`,
      );
  }
}

/** Throws unless each operand has as many elements as the attributes of its launch require. */
export function requireLengths<B, Name extends string>(
  op: string,
  operands: { readonly [name in Name]?: Binding<B> | undefined },
  lengths: Readonly<Record<Name, number>>,
): void {
  for (const name in lengths) requireElements(op, name, operands[name], lengths[name]);
}

/** {@link requireLengths} where all have the same. */
export function requireLength<B>(
  op: string,
  operands: Readonly<Record<string, Binding<B>>>,
  length: number,
): void {
  for (const name in operands) requireElements(op, name, operands[name], length);
}

function requireElements<B>(
  op: string,
  name: string,
  operand: Binding<B> | undefined,
  needed: number,
): void {
  if (!operand || operand.length === needed) return;
  if (!Number.isSafeInteger(needed) || needed < 0)
    throw new RangeError(
      `${op}: by the attributes ${name} would have ${needed} elements: give all sizes as whole numbers`,
    );
  throw new RangeError(
    `${op}: ${name} has ${operand.length} elements, but the attributes need ${needed}: bind a range of that length`,
  );
}
