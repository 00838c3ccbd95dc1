import { cpuRuntime, grad, type Runtime, type Tensor } from "../src/index.js";

/** A tensor that a case makes anew for every evaluation. */
export interface CaseInput {
  readonly shape: readonly number[];
  readonly values: Float64Array;
}

/** A function of tensors whose derivatives are checked. */
export interface GradientCase {
  readonly name: string;
  readonly inputs: readonly CaseInput[];
  apply(inputs: readonly Tensor[], runtime: Runtime): Tensor;
}

/** The errors of central differences are h² and 2⁻⁵³/h: both are about 1e-11 here. */
const h = 1e-5;

/** The errors are about 1e-9, far below this limit. */
const tolerance = 1e-6;

/** A function of tensors to one number, made of a case's result and fixed weights. */
type Scalar = (inputs: readonly Tensor[]) => Tensor;

/** The mismatches of a case's gradients, one line for each number that differs. */
export async function gradientMismatches(check: GradientCase): Promise<readonly string[]> {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  const loss = lossOf(check, runtime);
  return [
    ...(await mismatches(runtime, check, loss)),
    ...(await partialMismatches(runtime, check, loss)),
  ];
}

/** The mismatches of a case's second derivatives: those of its weighted gradient. */
export async function secondDerivativeMismatches(check: GradientCase): Promise<readonly string[]> {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  const loss = lossOf(check, runtime);
  return mismatches(runtime, check, (inputs) => {
    // A linear function has a constant gradient, which depends on no input: the squares keep it in the check.
    const gradients = grad(loss(inputs).square(), inputs, { createGraph: true });
    return total(gradients.map((gradient, i) => weighted(gradient as Tensor, 100 + i)));
  });
}

/**
 * The differences between a case's gradients on a runtime and in float64; in float32 they agree to about five digits.
 */
export async function gradientDifferences(
  runtime: Runtime,
  checks: readonly GradientCase[],
): Promise<readonly string[]> {
  const exact = cpuRuntime({ arithmetic: "float64" });
  const lines = checks.map(async (check) => {
    const actual = gradientsOf(runtime, check.inputs, lossOf(check, runtime));
    const expected = await gradientsOf(exact, check.inputs, lossOf(check, exact));
    const found = await actual;
    return check.inputs.flatMap((_, i) =>
      differing(`${check.name}, input ${i}`, found[i], expected[i] as Float64Array, 1e-4),
    );
  });
  return (await Promise.all(lines)).flat();
}

const lossOf =
  (check: GradientCase, runtime: Runtime): Scalar =>
  (inputs) =>
    weighted(check.apply(inputs, runtime), 10);

const total = (terms: readonly Tensor[]): Tensor => terms.reduce((sum, term) => sum.add(term));

const weighted = (x: Tensor, seed: number): Tensor =>
  x.mul(x.runtime.tensor(numbers(x.size, seed), x.shape)).sum();

async function mismatches(
  runtime: Runtime,
  { inputs }: GradientCase,
  f: Scalar,
): Promise<readonly string[]> {
  const analytic = await gradientsOf(runtime, inputs, f);
  if (await agreeAlongDirections(runtime, inputs, f, analytic)) return [];
  const numeric = await differences(runtime, inputs, f);
  return inputs.flatMap((_, i) => differing(`input ${i}`, analytic[i], numeric[i] as Float64Array));
}

/**
 * Whether gradients explain how `f` changes when all elements move at once, in two directions of scattered weights. It sees what a
 * difference for each element sees, at a tenth of the cost: an error of the gradient would have to be orthogonal to both.
 */
async function agreeAlongDirections(
  runtime: Runtime,
  inputs: readonly CaseInput[],
  f: Scalar,
  gradients: readonly (Float64Array | undefined)[],
): Promise<boolean> {
  const largest = gradients.flatMap((gradient) => Array.from(gradient ?? [], Math.abs));
  const limit = tolerance * Math.max(1e-3, ...largest);
  const agree = [1000, 2000].map(async (seed) => {
    const directions = inputs.map(({ values }, i) => numbers(values.length, seed + i));
    const along = (step: number): Promise<number> => {
      const tensors = inputs.map(({ shape, values }, i) => {
        const direction = directions[i] as Float64Array;
        const moved = values.map((value, e) => value + step * (direction[e] as number));
        return runtime.tensor(moved, shape, { requiresGrad: true });
      });
      return f(tensors).item();
    };
    const slope = ((await along(h)) - (await along(-h))) / (2 * h);
    const expected = directions.reduce(
      (sum, direction, i) =>
        sum + direction.reduce((s, v, e) => s + v * (gradients[i]?.[e] ?? Number.NaN), 0),
      0,
    );
    return Math.abs(slope - expected) <= limit;
  });
  return (await Promise.all(agree)).every(Boolean);
}

/** A gradient must not depend on whether the other inputs need one. */
async function partialMismatches(
  runtime: Runtime,
  { inputs }: GradientCase,
  f: Scalar,
): Promise<readonly string[]> {
  if (inputs.length === 1) return [];
  const together = await gradientsOf(runtime, inputs, f);
  const alone = await Promise.all(
    inputs.map(async (_, i) => (await gradientsOf(runtime, inputs, f, [i]))[i]),
  );
  return inputs.flatMap((_, i) =>
    differing(`input ${i} alone`, alone[i], together[i] as Float64Array),
  );
}

async function gradientsOf(
  runtime: Runtime,
  inputs: readonly CaseInput[],
  f: Scalar,
  wanted: readonly number[] = inputs.map((_, i) => i),
): Promise<readonly (Float64Array | undefined)[]> {
  const tensors = inputs.map(({ shape, values }, i) =>
    runtime.tensor(values, shape, { requiresGrad: wanted.includes(i) }),
  );
  const gradients = grad(f(tensors), tensors);
  return Promise.all(gradients.map(async (g) => g && Float64Array.from(await g.toArray())));
}

async function differences(
  runtime: Runtime,
  inputs: readonly CaseInput[],
  f: Scalar,
): Promise<readonly Float64Array[]> {
  const at = (input: number, element: number, step: number): Tensor => {
    const tensors = inputs.map(({ shape, values }, i) => {
      const moved = values.slice();
      if (i === input) moved[element] = (moved[element] as number) + step;
      return runtime.tensor(moved, shape, { requiresGrad: true });
    });
    return f(tensors);
  };
  return Promise.all(
    inputs.map(async ({ values }, i) => {
      const pairs = Array.from(values, (_, e) => [at(i, e, h), at(i, e, -h)] as const);
      const slopes = pairs.map(
        async ([above, below]) => ((await above.item()) - (await below.item())) / (2 * h),
      );
      return Float64Array.from(await Promise.all(slopes));
    }),
  );
}

function differing(
  what: string,
  actual: Float64Array | undefined,
  expected: Float64Array,
  within = tolerance,
): readonly string[] {
  if (!actual) return [`${what} has no gradient`];
  const size = Math.max(1e-3, ...expected.map(Math.abs));
  return Array.from(expected).flatMap((value, e) =>
    Math.abs((actual[e] as number) - value) <= within * size
      ? []
      : [`${what}, element ${e}: ${actual[e]}, expected ${value}`],
  );
}

/** Numbers between -1 and 1, scattered, none near 0 and no two alike: kinks and ties are far from all of them. */
export function numbers(count: number, seed: number): Float64Array {
  const offset = (seed * 0.7548776662466927) % 1;
  return Float64Array.from({ length: count }, (_, i) => {
    const place = (offset + (i + 1) * 0.6180339887498949) % 1;
    return (place < 0.5 ? -1 : 1) * (0.1 + 0.9 * Math.abs(2 * place - 1));
  });
}
