import { shown } from "./attributes.js";
import { type Domain, quadType, scalarType } from "./domain.js";

/**
 * How an elementwise kernel maps element i of the result to an operand's element: the `same` index, a `scalar`, a `row`
 * that repeats every `size0` elements, or strides over two or more dimensions.
 */
export type Indexing = "same" | "scalar" | "row" | `strided${number}`;

/** The number of dimensions with strides; 0 for other kinds. */
export const stridedRank = (kind: Indexing): number =>
  kind.startsWith("strided") ? Number(kind.slice("strided".length)) : 0;

export interface OperandIndexing {
  readonly kind: Indexing;
  /** Sizes of the result's dimensions after merging adjacent ones where possible, outermost first. */
  readonly sizes: readonly number[];
  /** Elements of the operand between neighbours along each dimension; empty unless strided. */
  readonly strides: readonly number[];
}

/** The indexing of an operand that is broadcast to a result, as in NumPy. Throws where the shapes do not broadcast. */
export function indexingOf(operand: readonly number[], result: readonly number[]): OperandIndexing {
  if (!Array.isArray(operand) || !Array.isArray(result)) refuseShape(operand, result);
  if (isSame(operand, result)) return same;
  return isRow(operand, result)
    ? { kind: "row", sizes: operand, strides: noStrides }
    : broadcastIndexing(operand, result);
}

function refuseShape(operand: unknown, result: unknown): never {
  const [what, shape] = Array.isArray(operand) ? ["result", result] : ["operand", operand];
  throw new TypeError(
    `the shape of an elementwise ${what} is ${shown(shape)}: give { ...binding, shape: [2, 3] }`,
  );
}

const noStrides: readonly number[] = [];

/** Whether an operand is one row that several rows of the result repeat: the commonest case, told without arrays. */
function isRow(operand: readonly number[], result: readonly number[]): boolean {
  const size = operand[0] as number;
  if (operand.length !== 1 || size < 2 || result.at(-1) !== size) return false;
  for (let d = 0; d < result.length - 1; d++) if (result[d] !== 1) return true;
  return false;
}

const same: OperandIndexing = { kind: "same", sizes: [], strides: [] };

function isSame(operand: readonly number[], result: readonly number[]): boolean {
  if (operand.length !== result.length) return false;
  for (let d = 0; d < operand.length; d++) if (operand[d] !== result[d]) return false;
  return true;
}

function broadcastIndexing(operand: readonly number[], result: readonly number[]): OperandIndexing {
  const padded = [...Array<number>(result.length - operand.length).fill(1), ...operand];
  let stride = 1;
  const dimensions = result
    .map((size, d) => ({ size, operandSize: padded[d] as number }))
    .reverse()
    .map(({ size, operandSize }) => {
      if (operandSize !== size && operandSize !== 1)
        throw new RangeError(`[${operand}] does not broadcast to [${result}]`);
      const own = operandSize === 1 ? 0 : stride;
      stride *= operandSize;
      return { size, stride: own };
    })
    .reverse()
    .filter(({ size }) => size !== 1);
  const merged: { size: number; stride: number }[] = [];
  for (const { size, stride: own } of dimensions) {
    const outer = merged.at(-1);
    if (outer && outer.stride === own * size) {
      outer.size *= size;
      outer.stride = own;
    } else merged.push({ size, stride: own });
  }
  const [first, second] = merged;
  if (!first || (merged.length === 1 && first.stride === 1)) return same;
  if (merged.length === 1) return { kind: "scalar", sizes: [], strides: [] };
  if (merged.length === 2 && first.stride === 0 && second?.stride === 1)
    return { kind: "row", sizes: [second.size], strides: [] };
  return {
    kind: `strided${merged.length}`,
    sizes: merged.map(({ size }) => size),
    strides: merged.map((dimension) => dimension.stride),
  };
}

/** WGSL `quad_x(q)`: elements 4q … 4q+3 of operand `x`, whose values have this domain. */
export function indexingWgsl(kind: Indexing, x: string, domain: Domain = "float"): string {
  const [quad, scalar] = [quadType(domain), scalarType(domain)];
  const head = `fn quad_${x}(q: u32) -> ${quad} {`;
  const gather = (of: (i: string) => string): string =>
    `return ${quad}(${[0, 1, 2, 3].map((j) => `${scalar}(at_${x}(${of(`i + ${j}u`)}))`).join(", ")});`;
  switch (kind) {
    case "same":
      return `${head} return ${quad}(load_${x}(q)); }\n`;
    case "scalar":
      return `${head} return ${quad}(${scalar}(at_${x}(0u))); }\n`;
    case "row":
      return `${head}
  let n = s.${x}_size0;
  if ((n & 3u) == 0u) { return ${quad}(load_${x}(q % (n >> 2u))); }
  let i = q * 4u;
  ${gather((i) => `(${i}) % n`)}
}
`;
    default: {
      const rank = stridedRank(kind);
      let walk = "var rest = i; var offset = 0u;";
      for (let d = rank - 1; d > 0; d--)
        walk += ` offset += (rest % s.${x}_size${d}) * s.${x}_stride${d}; rest /= s.${x}_size${d};`;
      // Past the last element the outermost coordinate exceeds its size, which is harmless: the reads are clamped and
      // unused.
      return `fn offset_${x}(i: u32) -> u32 { ${walk} return offset + rest * s.${x}_stride0; }
${head} let i = q * 4u; ${gather((i) => `offset_${x}(${i})`)} }
`;
    }
  }
}

/** The same mapping for the CPU reference. */
export function inputIndex(
  kind: Indexing,
  x: string,
  scalars: Readonly<Record<string, number>>,
): (i: number) => number {
  const value = (name: string): number => scalars[`${x}_${name}`] as number;
  switch (kind) {
    case "same":
      return (i) => i;
    case "scalar":
      return () => 0;
    case "row": {
      const size = value("size0");
      return (i) => i % size;
    }
    default: {
      const rank = stridedRank(kind);
      const sizes = Array.from({ length: rank }, (_, d) => value(`size${d}`));
      const strides = Array.from({ length: rank }, (_, d) => value(`stride${d}`));
      return (i) => {
        let rest = i;
        let offset = 0;
        for (let d = rank - 1; d > 0; d--) {
          const size = sizes[d] as number;
          offset += (rest % size) * (strides[d] as number);
          rest = Math.floor(rest / size);
        }
        return offset + rest * (strides[0] as number);
      };
    }
  }
}
