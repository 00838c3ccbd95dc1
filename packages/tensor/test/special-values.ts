import { readFileSync } from "node:fs";
import { grad, type Op, type Runtime, type Tensor } from "../src/index.js";
import * as further from "../src/ops/functional.js";
import * as ops from "../src/ops/index.js";
import type { FloatDType } from "./forward-check.js";

type Written = number | "nan" | "inf" | "-inf";

/** By torch: see golden/special-values.py. */
interface File {
  readonly values: Readonly<Record<string, readonly Written[]>>;
  readonly gradients: readonly Written[];
  readonly rows: readonly (readonly Written[])[];
  readonly rowGradient: readonly number[];
  readonly cases: Readonly<Record<string, ElementCase | RowCase>>;
}

interface ElementCase {
  readonly arity: number;
  readonly result: readonly Written[];
  /** For each gradient of the result, those of the operands; null where there is none. */
  readonly gradients: readonly (readonly (readonly Written[] | null)[])[];
}

interface RowCase {
  readonly result: readonly Written[];
  readonly gradients: readonly Written[];
}

/** One number of an op at special values: with its operands and the gradient of the result. */
export interface SpecialValue {
  readonly name: string;
  /** The kind of number: the result, or the gradient of an operand. */
  readonly what: "result" | `gradient ${number}`;
  readonly at: readonly number[];
  /** The gradient of the result, where the number is a gradient. */
  readonly gradient?: number;
  readonly value: number;
}

const file = JSON.parse(
  readFileSync(new URL("golden/special-values.json", import.meta.url), "utf8"),
) as File;

const nonFinite: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  "-inf": Number.NEGATIVE_INFINITY,
};

const numberOf = (x: Written): number =>
  typeof x === "string" ? (nonFinite[x] as number) : Math.fround(x);

const rows = file.rows.map((row) => row.map(numberOf));
const gradients = file.gradients.map(numberOf);

/** Every combination of the values of an arity, as operands. */
function combinations(arity: number): readonly (readonly number[])[] {
  const values = (file.values[arity] as readonly Written[]).map(numberOf);
  let found: readonly (readonly number[])[] = [[]];
  for (let i = 0; i < arity; i++) found = found.flatMap((lead) => values.map((v) => [...lead, v]));
  return found;
}

export const names: readonly string[] = Object.keys(file.cases);

const casesOf = (wanted: readonly string[]): [string, ElementCase | RowCase][] =>
  wanted.map((name) => [name, file.cases[name] as ElementCase | RowCase]);

/** The results of torch, one number at a time. */
export function torchValues(wanted: readonly string[] = names): readonly SpecialValue[] {
  return casesOf(wanted).flatMap(([name, check]) =>
    "arity" in check ? elementValues(name, check) : rowValues(name, check),
  );
}

function elementValues(name: string, check: ElementCase): SpecialValue[] {
  const places = combinations(check.arity);
  const found = check.result.map(
    (value, i): SpecialValue => ({
      name,
      what: "result",
      at: places[i] as readonly number[],
      value: numberOf(value),
    }),
  );
  for (const [g, ofOperands] of check.gradients.entries())
    for (const [o, values] of ofOperands.entries())
      for (const [i, value] of (values ?? []).entries())
        found.push({
          name,
          what: `gradient ${o}`,
          at: places[i] as readonly number[],
          gradient: gradients[g] as number,
          value: numberOf(value),
        });
  return found;
}

function rowValues(name: string, { result, gradients }: RowCase): SpecialValue[] {
  const width = result.length / rows.length;
  const ofRow = (what: SpecialValue["what"], values: readonly Written[], size: number) =>
    values.map((value, i) => ({
      name: `${name}[${i % size}]`,
      what,
      at: rows[Math.floor(i / size)] as readonly number[],
      value: numberOf(value),
    }));
  return [...ofRow("result", result, width), ...ofRow("gradient 0", gradients, 3)];
}

/** The numbers of {@link torchValues}, in its order, as a runtime computes them in a storage format. */
export async function valuesOn(
  runtime: Runtime,
  dtype: FloatDType,
  wanted: readonly string[] = names,
): Promise<readonly number[]> {
  const recorded = casesOf(wanted).map(([name, check]) => {
    const apply = functions[name];
    if (!apply) throw new Error(`no function is named ${name}`);
    return "arity" in check
      ? elementsOn(runtime, dtype, check, apply)
      : rowsOn(runtime, dtype, check, apply);
  });
  return (await Promise.all(recorded.map((read) => read()))).flat();
}

type Apply = (...x: [Tensor, Tensor, Tensor]) => Tensor;
type Read = () => Promise<readonly number[]>;

/** The gradients of the result are concatenated, so that one backward pass suffices. */
function elementsOn(runtime: Runtime, dtype: FloatDType, check: ElementCase, apply: Apply): Read {
  const places = combinations(check.arity);
  const wanted = check.gradients[0]?.length ?? 0;
  const repeats = Math.max(check.gradients.length, 1);
  const operands = Array.from({ length: check.arity }, (_, i) => {
    const values = places.map((place) => place[i] as number);
    return runtime.tensor(Array.from({ length: repeats }, () => values).flat(), undefined, {
      dtype,
      requiresGrad: i < wanted,
    });
  });
  const y = apply(...(operands as [Tensor, Tensor, Tensor]));
  const seed = gradients.flatMap((g) => places.map(() => g));
  const found =
    wanted === 0
      ? []
      : grad(y, operands.slice(0, wanted), {
          gradient: runtime.tensor(seed, undefined, { dtype: y.dtype as FloatDType }),
        });
  return async () => {
    const result = [...(await y.toArray())].slice(0, places.length);
    const arrays = await Promise.all(found.map(async (d) => [...((await d?.toArray()) ?? [])]));
    const ofGradients = check.gradients.flatMap((ofOperands, g) =>
      ofOperands.flatMap((values, o) =>
        values ? (arrays[o]?.slice(g * places.length, (g + 1) * places.length) ?? []) : [],
      ),
    );
    return [...result, ...ofGradients];
  };
}

function rowsOn(runtime: Runtime, dtype: FloatDType, check: RowCase, apply: Apply): Read {
  const x = runtime.tensor(rows.flat(), [rows.length, 3], { dtype, requiresGrad: true });
  const y = apply(x, x, x);
  const seed = check.result.map((_, i) => (y.rank === 2 ? file.rowGradient[i % 3] : 1.5) as number);
  const [d] = grad(y, [x], {
    gradient: runtime.tensor(seed, y.shape, { dtype: y.dtype as FloatDType }),
  });
  return async () => [...(await y.toArray()), ...((await d?.toArray()) ?? [])];
}

const of =
  (op: Op<null>): Apply =>
  (...x) =>
    op.apply(x, null);

const none = { reduction: "none" } as const;

const functions: Readonly<Record<string, Apply>> = {
  relu: of(ops.relu),
  sigmoid: of(ops.sigmoid),
  tanh: of(ops.tanh),
  exp: of(ops.exp),
  expm1: of(ops.expm1),
  log: of(ops.log),
  log1p: of(ops.log1p),
  log2: of(ops.log2),
  log10: of(ops.log10),
  reciprocal: of(ops.reciprocal),
  rsqrt: of(ops.rsqrt),
  sqrt: of(ops.sqrt),
  square: of(ops.square),
  abs: of(ops.abs),
  sin: of(ops.sin),
  cos: of(ops.cos),
  tan: of(ops.tan),
  asin: of(ops.asin),
  acos: of(ops.acos),
  atan: of(ops.atan),
  sinh: of(ops.sinh),
  cosh: of(ops.cosh),
  erf: of(ops.erf),
  erfinv: of(ops.erfinv),
  neg: (x) => x.neg(),
  sign: of(ops.sign),
  floor: of(ops.floor),
  ceil: of(ops.ceil),
  round: of(ops.round),
  silu: of(ops.silu),
  gelu: (x) => ops.gelu(x),
  "gelu by tanh": (x) => ops.gelu(x, { approximate: "tanh" }),
  elu: (x) => ops.elu(x, 0.5),
  leakyRelu: (x) => ops.leakyRelu(x, 0.25),
  clamp: (x) => ops.clamp(x, { min: -0.5, max: 1 }),
  "clamp from below": (x) => ops.clamp(x, { min: -0.5 }),
  "clamp from above": (x) => ops.clamp(x, { max: 1 }),
  hardtanh: (x) => ops.hardtanh(x),
  softplus: (x) => ops.softplus(x),
  "softplus of 2x": (x) => ops.softplus(x, { beta: 2, threshold: 3 }),
  scale: (x) => x.mul(-0.5),
  addScalar: (x) => x.add(0.5),
  ...Object.fromEntries(
    [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5].map((c) => [`pow by ${c}`, (x: Tensor) => x.pow(c)]),
  ),
  add: of(ops.add),
  sub: of(ops.sub),
  mul: of(ops.mul),
  div: of(ops.div),
  maximum: of(ops.maximum),
  minimum: of(ops.minimum),
  atan2: of(ops.atan2),
  pow: (x, y) => x.pow(y),
  eq: (a, b) => ops.eq(a, b),
  ne: (a, b) => ops.ne(a, b),
  lt: (a, b) => ops.lt(a, b),
  le: (a, b) => ops.le(a, b),
  gt: (a, b) => ops.gt(a, b),
  ge: (a, b) => ops.ge(a, b),
  isnan: (x) => ops.isNan(x),
  isinf: (x) => ops.isInf(x),
  isfinite: (x) => ops.isFiniteNumber(x),
  prelu: of(ops.prelu),
  where: of(ops.where),
  maskedFill: (x, mask) => ops.maskedFill(x, mask, 2),
  addcmul: (x, a, b) => ops.addcmul(x, a, b, 0.5),
  addcdiv: (x, a, b) => ops.addcdiv(x, a, b, 0.5),
  l1Loss: (x, t) => ops.l1Loss(x, t, none),
  mseLoss: (x, t) => ops.mseLoss(x, t, none),
  smoothL1Loss: (x, t) => ops.smoothL1Loss(x, t, none),
  "smoothL1Loss of 2": (x, t) => ops.smoothL1Loss(x, t, { beta: 2, ...none }),
  "smoothL1Loss of 0": (x, t) => ops.smoothL1Loss(x, t, { beta: 0, ...none }),
  huberLoss: (x, t) => ops.huberLoss(x, t, none),
  "huberLoss of 2": (x, t) => ops.huberLoss(x, t, { delta: 2, ...none }),
  klDiv: (x, t) => ops.klDiv(x, t, none),
  "klDiv of logarithms": (x, t) => ops.klDiv(x, t, { logTarget: true, ...none }),
  poissonNllLoss: (x, t) => ops.poissonNllLoss(x, t, none),
  "poissonNllLoss of rates": (x, t) => ops.poissonNllLoss(x, t, { logInput: false, ...none }),
  binaryCrossEntropyWithLogits: (x, t) => ops.binaryCrossEntropyWithLogits(x, t, none),
  softMarginLoss: (x, t) => ops.softMarginLoss(x, t, none),
  hingeEmbeddingLoss: (x, t) => ops.hingeEmbeddingLoss(x, t, none),
  marginRankingLoss: (a, b, t) => ops.marginRankingLoss(a, b, t, none),
  softmax: (x) => ops.softmax(x),
  logSoftmax: (x) => ops.logSoftmax(x),
  logsumexp: (x) => ops.logsumexp(x, { axes: -1 }),
  crossEntropy: (x) => ops.crossEntropy(x, ones(x), none),
  "smoothed crossEntropy": (x) => ops.crossEntropy(x, ones(x), { labelSmoothing: 0.25, ...none }),
  amax: (x) => x.amax(-1),
  amin: (x) => x.amin(-1),
  max: (x) => x.max(-1).values,
  min: (x) => x.min(-1).values,
  sum: (x) => x.sum(-1),
  mean: (x) => x.mean(-1),
  prod: (x) => x.prod(-1),
  norm: (x) => x.norm({ axes: -1 }),
  "norm of 1": (x) => x.norm({ ord: 1, axes: -1 }),
  "norm of infinity": (x) => x.norm({ ord: Number.POSITIVE_INFINITY, axes: -1 }),
  variance: (x) => x.variance({ axes: -1 }),
  layerNorm: (x) => ops.layerNorm(x, 3),
  "lerp near": (a, b) => further.lerp(a, b, 0.25),
  "lerp far": (a, b) => further.lerp(a, b, 0.75),
  "lerp by a tensor": (a, b, w) => further.lerp(a, b, w),
  lstm: (x) => {
    const states = { hidden: halves(x, [x.size, 1]), cell: halves(x, [x.size, 1]) };
    return further.lstm(x.reshape([1, -1, 1]), unitOf(x, 4), states).output.reshape([-1]);
  },
  gru: (x) => {
    const states = { hidden: halves(x, [x.size, 1]) };
    return further.gru(x.reshape([1, -1, 1]), unitOf(x, 3), states).output.reshape([-1]);
  },
  sort: (x) => further.sort(x).values,
  "sort, descending": (x) => further.sort(x, { descending: true }).values,
  median: (x) => further.median(x, -1).values,
  maxPool1d: (x) => further.maxPool1d(x.reshape([-1, 3, 1]), { window: 3 }).reshape([-1]),
  avgPool1d: (x) => further.avgPool1d(x.reshape([-1, 3, 1]), { window: 3 }).reshape([-1]),
  adaptiveAvgPool1d: (x) => further.adaptiveAvgPool1d(x.reshape([-1, 3, 1]), 1).reshape([-1]),
  tril: (x) => further.tril(x.reshape([-1, 1, 3])).reshape([-1, 3]),
  triu: (x) => further.triu(x.reshape([-1, 1, 3]), { diagonal: 1 }).reshape([-1, 3]),
  maxPool2d: (x) => ops.maxPool2d(x.reshape([-1, 3, 1, 1]), { window: [3, 1] }).reshape([-1]),
};

const ones = (x: Tensor): Tensor => x.runtime.tensor(new Uint32Array(x.shape[0] as number).fill(1));

const halves = (x: Tensor, shape: readonly number[]): Tensor =>
  x.runtime.full(shape, 0.5, { dtype: x.dtype });

/** The weights of a recurrent layer of one unit. */
const unitOf = (x: Tensor, gates: number): further.RecurrentWeights => ({
  weightIh: halves(x, [gates, 1]),
  weightHh: halves(x, [gates, 1]),
});
