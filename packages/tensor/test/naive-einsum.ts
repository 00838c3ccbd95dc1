/** Einstein summation by loops over every label, for equations of single letters with a result. */
export function naiveEinsum(
  equation: string,
  operands: readonly (readonly number[])[],
  shapes: readonly (readonly number[])[],
): number[] {
  const [left, output] = equation.split("->") as [string, string];
  const terms = left.split(",");
  const sizes = new Map<string, number>();
  for (const [i, term] of terms.entries())
    for (const [d, label] of [...term].entries())
      sizes.set(label, Math.max(sizes.get(label) ?? 1, shapes[i]?.[d] as number));
  const size = (label: string): number => sizes.get(label) as number;
  const inner = [...sizes.keys()].filter((label) => !output.includes(label));
  const at = (i: number, place: ReadonlyMap<string, number>): number => {
    const shape = shapes[i] as readonly number[];
    const flat = [...(terms[i] as string)].reduce(
      (sum, label, d) =>
        sum * (shape[d] as number) + (shape[d] === 1 ? 0 : (place.get(label) as number)),
      0,
    );
    return operands[i]?.[flat] as number;
  };
  return places([...output], size).map((outer) =>
    places(inner, size).reduce((sum, rest) => {
      const place = new Map([...outer, ...rest]);
      return sum + terms.reduce((product, _, i) => product * at(i, place), 1);
    }, 0),
  );
}

/** Every assignment of positions to labels, the last label running fastest. */
const places = (
  labels: readonly string[],
  size: (label: string) => number,
): ReadonlyMap<string, number>[] =>
  labels.reduce<ReadonlyMap<string, number>[]>(
    (partial, label) =>
      partial.flatMap((place) =>
        Array.from({ length: size(label) }, (_, at) => new Map([...place, [label, at]])),
      ),
    [new Map()],
  );
