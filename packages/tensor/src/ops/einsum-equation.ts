import { ShapeError } from "../errors.js";

/** An equation whose ellipses are spelled out: a label for every dimension. */
export interface EinsumLabels {
  readonly inputs: readonly (readonly string[])[];
  readonly output: readonly string[];
}

const ellipsis = "...";

/** The labels of an equation such as "bij,bjk->bik" for operands of these shapes. Dimensions under `...` are labelled "...0" and so on. */
export function parseEinsum(
  equation: string,
  shapes: readonly (readonly number[])[],
): EinsumLabels {
  const fail = (why: string): never => {
    throw new ShapeError(`einsum "${equation}": ${why}`);
  };
  const [left = "", right, ...more] = equation.replaceAll(/\s/g, "").split("->");
  if (more.length > 0) fail("there is more than one ->");
  const terms = left.split(",");
  if (terms.length !== shapes.length)
    fail(`it names ${terms.length} operands, but ${shapes.length} were passed`);
  const hidden = terms.map((term, i) => {
    const labels = lettersOf(term, fail);
    const shape = shapes[i] as readonly number[];
    const rest = shape.length - labels.length;
    if (rest < 0 || (rest > 0 && !term.includes(ellipsis)))
      fail(
        `operand ${i} of shape [${shape}] has ${shape.length} dimensions, but "${term}" labels ${labels.length}${rest > 0 ? ": put ... where the others are" : ""}`,
      );
    return rest;
  });
  // Dimensions under an ellipsis are aligned at the last, as in broadcasting.
  const most = Math.max(0, ...hidden);
  const spell = (term: string, count: number): readonly string[] => {
    const [before = "", after = ""] = term.split(ellipsis);
    if (!term.includes(ellipsis)) return [...term];
    const names = Array.from({ length: count }, (_, d) => `${ellipsis}${most - count + d}`);
    return [...before, ...names, ...after];
  };
  const inputs = terms.map((term, i) => spell(term, hidden[i] as number));
  if (right !== undefined) lettersOf(right, fail);
  const output = right === undefined ? implicitOutput(inputs) : spell(right, most);
  const known = new Set(inputs.flat());
  for (const [d, label] of output.entries()) {
    if (!known.has(label)) fail(`the result has the label "${label}", which no operand has`);
    if (output.indexOf(label) < d) fail(`the result has the label "${label}" twice`);
  }
  return { inputs, output };
}

function lettersOf(term: string, fail: (why: string) => never): readonly string[] {
  const parts = term.split(ellipsis);
  if (parts.length > 2) fail(`"${term}" has more than one ...`);
  const letters = [...parts.join("")];
  const wrong = letters.find((letter) => !/[a-zA-Z]/.test(letter));
  if (wrong) fail(`"${wrong}" is no label: use letters, "...", "," and "->"`);
  return letters;
}

/** Labels that occur once, in alphabetical order, after the dimensions of the ellipsis. */
function implicitOutput(inputs: readonly (readonly string[])[]): readonly string[] {
  const all = inputs.flat();
  const hidden = [...new Set(all.filter((label) => label.startsWith(ellipsis)))].sort();
  const once = all.filter(
    (label) => !label.startsWith(ellipsis) && all.indexOf(label) === all.lastIndexOf(label),
  );
  return [...hidden, ...once.sort()];
}
