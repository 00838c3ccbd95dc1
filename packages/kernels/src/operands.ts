import type { Binding } from "@halfstep/device";

/** Throws unless each operand has as many elements as the attributes of its launch require. */
export function requireLengths<B, Name extends string>(
  op: string,
  operands: { readonly [name in Name]?: Binding<B> | undefined },
  lengths: Readonly<Record<Name, number>>,
): void {
  for (const name in lengths) {
    const operand = operands[name];
    const needed = lengths[name];
    if (operand && operand.length !== needed)
      throw new RangeError(
        `${op}: ${name} has ${operand.length} elements, but the attributes need ${needed}: bind a range of that length`,
      );
  }
}
