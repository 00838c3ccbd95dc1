import * as kinds from "../arguments/kinds.js";
import { type Composite, composite } from "../dispatch/composite.js";
import { ShapeError } from "../errors.js";
import type { Tensor } from "../tensor/tensor.js";
import { parseEinsum } from "./einsum-equation.js";
import { mul } from "./elementwise.js";
import { matmul } from "./matmul.js";
import { sum } from "./sums.js";
import { slice } from "./windows.js";

type Labels = readonly string[];

/** A tensor with a label for each dimension. */
interface Labelled {
  readonly tensor: Tensor;
  readonly labels: Labels;
}

/**
 * Einstein summation as torch.einsum: `einsum("bij,bjk->bik", a, b)`. Labels are letters, `...` stands for dimensions that
 * broadcast, and without `->` the result has the labels that occur once, in alphabetical order. Operands are contracted from left
 * to right, each pair as one matrix product.
 *
 * @throws ShapeError that names the operand and the label, for equations that do not parse and for sizes that differ.
 */
export const einsum: Composite<(equation: string, ...operands: readonly Tensor[]) => Tensor> =
  composite(
    {
      name: "einsum",
      castPolicy: "lowerPrecision",
      parameters: { equation: kinds.text, operands: kinds.rest(kinds.tensor) },
    },
    (equation: string, ...operands: readonly Tensor[]): Tensor => {
      const { inputs, output } = parseEinsum(
        equation,
        operands.map(({ shape }) => shape),
      );
      const given = operands.map(
        (tensor, i): Labelled => ({ tensor, labels: inputs[i] as Labels }),
      );
      requireSizes(equation, given);
      const terms = given.map(diagonal);
      const wantedAfter = (position: number): ReadonlySet<string> =>
        new Set([...output, ...terms.slice(position + 1).flatMap(({ labels }) => labels)]);
      const result = terms.reduce((left, right, i) => contract(left, right, wantedAfter(i)));
      return arranged(summed(result, new Set(output)), output);
    },
  );

function requireSizes(equation: string, terms: readonly Labelled[]): void {
  const sizes = new Map<string, number>();
  for (const [i, { tensor, labels }] of terms.entries())
    for (const [d, label] of labels.entries()) {
      const size = tensor.shape[d] as number;
      const known = sizes.get(label) ?? 1;
      const first = labels.indexOf(label);
      if (tensor.shape[first] !== size)
        throw new ShapeError(
          `einsum "${equation}": operand ${i} of shape [${tensor.shape}] has no diagonal along "${label}": sizes ${tensor.shape[first]} and ${size} differ`,
        );
      if (size !== known && size !== 1 && known !== 1)
        throw new ShapeError(
          `einsum "${equation}": operand ${i} of shape [${tensor.shape}] has ${size} along "${label}", an operand before it ${known}`,
        );
      sizes.set(label, joined(known, size));
    }
}

/** Takes the diagonal where a label occurs twice. */
function diagonal(term: Labelled): Labelled {
  const { tensor, labels } = term;
  const second = labels.findIndex((label, d) => labels.indexOf(label) < d);
  if (second < 0) return term;
  const first = labels.indexOf(labels[second] as string);
  const others = [...labels.keys()].filter((d) => d !== first && d !== second);
  const size = tensor.shape[first] as number;
  const rest = others.map((d) => tensor.shape[d] as number);
  // In rows of [size, size] one after the other, those of the diagonal are size + 1 apart.
  const rows = tensor.permute([first, second, ...others]).reshape([size * size, ...rest]);
  return diagonal({
    tensor: slice(rows, 0, { end: size * size, step: size + 1 }),
    labels: [labels[first] as string, ...others.map((d) => labels[d] as string)],
  });
}

/** The product of two operands, summed over the labels that no later product needs. */
function contract(a: Labelled, b: Labelled, wanted: ReadonlySet<string>): Labelled {
  // A label that only one of them has, and that is not needed later, is summed before the product.
  const left = summed(a, new Set([...wanted, ...b.labels]));
  const right = summed(b, new Set([...wanted, ...a.labels]));
  const common = left.labels.filter((label) => right.labels.includes(label));
  const batch = common.filter((label) => wanted.has(label));
  const inner = common.filter((label) => !wanted.has(label));
  const rows = left.labels.filter((label) => !common.includes(label));
  const columns = right.labels.filter((label) => !common.includes(label));
  const labels = [...batch, ...rows, ...columns];
  const size = sizesOf([left, right]);
  if (inner.length === 0) {
    const x = aligned(left, labels);
    return { tensor: mul(x, aligned(right, labels)), labels };
  }
  const lengths = [batch, rows, columns, inner].map((group) => product(group.map(size)));
  const [entries, m, n, k] = lengths as [number, number, number, number];
  const matrices = (term: Labelled, order: Labels): Tensor =>
    arranged(expanded(term, [...batch, ...inner], size), order);
  const x = matrices(left, [...batch, ...rows, ...inner]).reshape([entries, m, k]);
  // A right operand whose columns come first in memory is used without a copy.
  const isTransposed = isInOrder(right.labels, [...batch, ...columns, ...inner]);
  const y = isTransposed
    ? matrices(right, [...batch, ...columns, ...inner]).reshape([entries, n, k])
    : matrices(right, [...batch, ...inner, ...columns]).reshape([entries, k, n]);
  const tensor = matmul(x, y, { transB: isTransposed });
  return { tensor: tensor.reshape(labels.map(size)), labels };
}

/** What two sizes broadcast to. */
const joined = (a: number, b: number): number => (a === 1 ? b : a);

const product = (sizes: readonly number[]): number => sizes.reduce((x, y) => x * y, 1);

const isInOrder = (labels: Labels, order: Labels): boolean => labels.join() === order.join();

/** The size of a label; one operand may have a size of 1 where the other has more. */
function sizesOf(terms: readonly Labelled[]): (label: string) => number {
  const sizes = new Map<string, number>();
  for (const { tensor, labels } of terms)
    for (const [d, label] of labels.entries())
      sizes.set(label, joined(sizes.get(label) ?? 1, tensor.shape[d] as number));
  return (label) => sizes.get(label) as number;
}

/** The term summed over the labels that are not wanted. */
function summed({ tensor, labels }: Labelled, wanted: ReadonlySet<string>): Labelled {
  const axes = labels.flatMap((label, d) => (wanted.has(label) ? [] : [d]));
  if (axes.length === 0) return { tensor, labels };
  return { tensor: sum(tensor, axes), labels: labels.filter((label) => wanted.has(label)) };
}

/** The term with sizes of 1 repeated along some labels. */
function expanded(
  { tensor, labels }: Labelled,
  along: Labels,
  size: (label: string) => number,
): Labelled {
  const shape = labels.map((label, d) =>
    along.includes(label) ? size(label) : (tensor.shape[d] as number),
  );
  return { tensor: shape.join() === tensor.shape.join() ? tensor : tensor.expand(shape), labels };
}

/** The tensor with its dimensions in the order of these labels. */
function arranged({ tensor, labels }: Labelled, order: Labels): Tensor {
  if (isInOrder(labels, order)) return tensor;
  return tensor.permute(order.map((label) => labels.indexOf(label)));
}

/** The tensor in the order of `order`, with a dimension of 1 for each label that it lacks. */
function aligned(term: Labelled, order: Labels): Tensor {
  const own = order.filter((label) => term.labels.includes(label));
  const tensor = arranged(term, own);
  return tensor.reshape(
    order.map((label) => (own.includes(label) ? (tensor.shape[own.indexOf(label)] as number) : 1)),
  );
}
