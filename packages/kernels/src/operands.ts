import type { Binding } from "@halfstep/device";

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
  if (operand && operand.length !== needed)
    throw new RangeError(
      `${op}: ${name} has ${operand.length} elements, but the attributes need ${needed}: bind a range of that length`,
    );
}
