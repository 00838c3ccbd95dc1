import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, gpuRuntime, type Runtime, type Tensor } from "../src/index.js";
import { type CaseInput, numbers } from "./gradient-check.js";

export type FloatDType = "float32" | "float16" | "bfloat16";

const onCpu = async (): Promise<Runtime> => cpuRuntime();
const onGpu = async (): Promise<Runtime> => gpuRuntime(await requestTestDevice());
const onPacked = async (): Promise<Runtime> =>
  gpuRuntime(await requestTestDevice({ tier: "packed" }));

/** The runtimes and dtypes on which ops are tested. Kernels have tests of their own for every dtype on every tier. */
export const places: readonly [runtime: string, dtype: FloatDType, open: () => Promise<Runtime>][] =
  [
    ["CPU", "float32", onCpu],
    ["CPU", "float16", onCpu],
    ["CPU", "bfloat16", onCpu],
    ["GPU", "float32", onGpu],
    ["GPU", "float16", onGpu],
    ["GPU, packed", "bfloat16", onPacked],
  ];

/** An op's result, and the same by a formula in float64. */
export interface ForwardCase {
  readonly name: string;
  readonly inputs: readonly CaseInput[];
  apply(inputs: readonly Tensor[], runtime: Runtime): Tensor;
  /** The expected result for the inputs as stored. */
  expected(inputs: readonly (readonly number[])[]): readonly number[];
  readonly shape: readonly number[];
}

/** Numbers between -1 and 1, none of them near 0. */
export const scattered = (shape: readonly number[], seed = 1): CaseInput => ({
  shape,
  values: numbers(
    shape.reduce((a, b) => a * b, 1),
    seed,
  ),
});

/** Relative to the largest expected number: a few roundings of the storage. */
const tolerances: Readonly<Record<string, number>> = {
  float32: 2 ** -19,
  float16: 2 ** -9,
  bfloat16: 2 ** -6,
};

/** The differences, a line for each case. All cases are recorded in one step, then read. */
export async function forwardMismatches(
  runtime: Runtime,
  dtype: FloatDType,
  cases: readonly ForwardCase[],
): Promise<readonly string[]> {
  const recorded = cases.map(({ inputs, apply }) => {
    const tensors = inputs.map(({ shape, values }) => runtime.tensor(values, shape, { dtype }));
    return { tensors, result: apply(tensors, runtime) };
  });
  const lines = cases.map(async ({ name, shape, expected }, i) => {
    const { tensors, result } = recorded[i] as (typeof recorded)[number];
    const stored = await Promise.all(tensors.map(async (x) => [...(await x.toArray())]));
    if (result.shape.join() !== shape.join())
      return `${name}: shape [${result.shape}], expected [${shape}]`;
    const tolerance = tolerances[result.dtype] as number;
    return differing(name, [...(await result.toArray())], expected(stored), tolerance);
  });
  return (await Promise.all(lines)).filter((line) => line !== undefined);
}

function differing(
  name: string,
  actual: readonly number[],
  expected: readonly number[],
  tolerance: number,
): string | undefined {
  if (actual.length !== expected.length)
    return `${name}: ${actual.length} elements, expected ${expected.length}`;
  const size = Math.max(...expected.map(Math.abs).filter(Number.isFinite), 1e-30);
  const worst = expected.findIndex((value, i) => {
    const is = actual[i] as number;
    return !Object.is(is, value) && !(Math.abs(is - value) <= tolerance * size);
  });
  return worst < 0
    ? undefined
    : `${name}: element ${worst} is ${actual[worst]}, expected ${expected[worst]}`;
}
