import { readFileSync } from "node:fs";
import { cpuRuntime, grad, type Runtime, type Tensor } from "../src/index.js";
import type { ForwardCase } from "./forward-check.js";

interface PackedTensor {
  readonly shape: readonly number[];
  readonly values: readonly number[];
  readonly isInteger: boolean;
}

/** One application of a function by torch: its result, and the gradients of the result weighted from 0.5 to 1.5. */
export interface GoldenCase {
  readonly op: string;
  readonly inputs: readonly PackedTensor[];
  /** Numbers and the like by name, as the library calls them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Tensors among the options. */
  readonly tensors: Readonly<Record<string, PackedTensor>>;
  readonly result: PackedTensor;
  /** Gradients of the inputs; null where none was requested. */
  readonly gradients: readonly (PackedTensor | null)[];
}

/** A function as cases call it: with its inputs, and with options that may include tensors. */
export type GoldenFunction = (
  inputs: readonly Tensor[],
  options: Readonly<Record<string, unknown>>,
) => Tensor;

export function readGolden(name: string): readonly GoldenCase[] {
  const path = new URL(`./golden/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(path, "utf8")) as { cases: readonly GoldenCase[] }).cases;
}

/** The differences of a function from torch, in float64; the values have nine decimals. */
export async function goldenMismatches(
  check: GoldenCase,
  apply: GoldenFunction,
): Promise<readonly string[]> {
  const runtime = cpuRuntime({ arithmetic: "float64" });
  const open = ({ shape, values, isInteger }: PackedTensor, requiresGrad: boolean): Tensor =>
    runtime.tensor(isInteger ? Uint32Array.from(values) : Float64Array.from(values), shape, {
      ...(!isInteger && { dtype: "float32", requiresGrad }),
    });
  const inputs = check.inputs.map((input, i) => open(input, check.gradients[i] !== null));
  const tensors = Object.entries(check.tensors).map(([name, tensor]) => [
    name,
    open(tensor, false),
  ]);
  const result = apply(inputs, { ...check.options, ...Object.fromEntries(tensors) });
  const title = `${check.op} ${JSON.stringify(check.options)} ${Object.keys(check.tensors)}`;
  if (result.shape.join() !== check.result.shape.join())
    return [`${title}: shape [${result.shape}], not [${check.result.shape}]`];
  const wanted = inputs.filter(({ requiresGrad }) => requiresGrad);
  const gradients = grad(result, wanted, { gradient: weightsOf(result) });
  const expected = check.gradients.filter((gradient) => gradient !== null);
  const lines = [differing("result", await result.toArray(), check.result.values)];
  for (const [i, gradient] of gradients.entries())
    lines.push(
      differing(
        `gradient ${i}`,
        gradient ? await gradient.toArray() : [],
        (expected[i] as PackedTensor).values,
      ),
    );
  return lines.filter((line) => line !== undefined).map((line) => `${title}: ${line}`);
}

/** The gradient of a result from which torch's were computed. */
function weightsOf({ runtime, size, shape }: Tensor): Tensor {
  const weights = Float64Array.from({ length: size }, (_, i) =>
    size === 1 ? 0.5 : 0.5 + i / (size - 1),
  );
  return runtime.tensor(weights, shape, { dtype: "float32" });
}

/** Torch's gradients of a function's inputs: see golden/gradients.py. */
export interface GradientsByTorch extends Pick<ForwardCase, "name" | "inputs" | "apply"> {
  /** Null where nothing flows. */
  readonly gradients: readonly (readonly number[] | null)[];
}

/** The gradients on a runtime that are not torch's, a line for each input. All are recorded, then read. */
export async function gradientsUnlikeTorch(
  runtime: Runtime,
  cases: readonly GradientsByTorch[],
  tolerance = 1e-7,
): Promise<readonly string[]> {
  const recorded = cases.map(({ inputs, apply }) => {
    const tensors = inputs.map(({ shape, values }) =>
      runtime.tensor(values, shape, { dtype: "float32", requiresGrad: true }),
    );
    const result = apply(tensors, runtime);
    return grad(result, tensors, { gradient: weightsOf(result) });
  });
  const lines = cases.flatMap(({ name, inputs, gradients }, c) =>
    inputs.map(async ({ values }, i) => {
      const actual = (await recorded[c]?.[i]?.toArray()) ?? new Float32Array(values.length);
      const expected = gradients[i] ?? Array<number>(values.length).fill(0);
      return differing(`${name}: gradient ${i}`, actual, expected, tolerance);
    }),
  );
  return (await Promise.all(lines)).filter((line) => line !== undefined);
}

function differing(
  what: string,
  actual: ArrayLike<number>,
  expected: readonly number[],
  tolerance = 1e-7,
): string | undefined {
  if (actual.length !== expected.length) return `${what} has ${actual.length} elements`;
  const at = expected.findIndex((value, i) => {
    const error = Math.abs((actual[i] as number) - value);
    return !(error <= tolerance + tolerance * Math.abs(value));
  });
  return at < 0 ? undefined : `${what}[${at}] is ${actual[at]}, not ${expected[at]}`;
}
