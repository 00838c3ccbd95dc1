import {
  autocast,
  type CastPolicies,
  type CastPolicy,
  DTypeError,
  torchCastPolicies,
} from "@halfstep/autocast";
import { expect, test } from "vitest";
import { gradientCases } from "../../test/gradient-cases.js";
import type { GradientCase } from "../../test/gradient-check.js";
import { cpuRuntime } from "../index.js";

/** Not ops of torch's: a cast has no policy, and `sumTo` is a sum. */
const others = ["castTo", "sumTo"];

/** Not in torch's table: torch composes them of listed ops, or lacks them. */
const composed: CastPolicies = {
  softmin: "float32Output",
  gaussianNllLoss: "float32",
  crfLoss: "float32",
  crfLogPartition: "float32",
  // As on torch's list for CPUs. Its CUDA kernel takes no halves, and gets the result of `log_softmax`.
  ctcLoss: "float32",
  // `_cudnnRnn` in torch's table.
  lstm: "lowerPrecision",
  gru: "lowerPrecision",
};

/** Statistics and parameters of these are float32 whatever their input is. */
const keepsParameters = ["batchNorm", "batchNormInference"];

const policyOf = (name: string): CastPolicy => composed[name] ?? torchCastPolicies[name] ?? "none";

function resultUnderAutocast(
  name: string,
  { inputs, apply }: GradientCase,
  input: "float32" | "float16",
  region: "float16" | "bfloat16",
): string {
  const runtime = cpuRuntime();
  const tensors = inputs.map(({ shape, values }, i) =>
    runtime.tensor(values, shape, {
      dtype: i > 0 && keepsParameters.includes(name) ? "float32" : input,
    }),
  );
  try {
    return autocast({ dtype: region }, () => apply(tensors, runtime)).dtype;
  } catch (error) {
    if (error instanceof DTypeError) return `refused: ${error.message}`;
    throw error;
  }
}

function expectedUnderAutocast(policy: CastPolicy, input: string, region: string): string {
  if (typeof policy === "object") return `refused: ${policy.banned}`;
  if (policy === "lowerPrecision") return region;
  return policy === "float32" || policy === "float32Output" ? "float32" : input;
}

test("under autocast every op gives the dtype that torch's table says", () => {
  const checked = Object.entries(gradientCases).filter(([name]) => !others.includes(name));
  const wrong = checked.flatMap(([name, { cases }]) =>
    cases.flatMap((check) =>
      (["float32", "float16"] as const).flatMap((input) => {
        const region = input === "float32" ? "bfloat16" : "float16";
        const expected = expectedUnderAutocast(policyOf(name), input, region);
        const dtype = resultUnderAutocast(name, check, input, region);
        return dtype === expected
          ? []
          : [`${name} (${check.name}) of ${input} in ${region}: ${dtype}, not ${expected}`];
      }),
    ),
  );
  expect(wrong).toEqual([]);
  const policies = checked
    .map(([name]) => policyOf(name))
    .map((policy) => (typeof policy === "object" ? "banned" : policy));
  expect(new Set(policies)).toEqual(
    new Set(["none", "float32", "float32Output", "lowerPrecision", "promote", "banned"]),
  );
});

/** Ops that promote their operands outside of autocast too, so that torch's table need not name them. */
const promoting = ["add", "sub", "mul", "div", "maximum", "minimum", "where"];

test("ops that promote take the widest dtype of their operands, in any order, inside and outside of regions", () => {
  const names = Object.keys(gradientCases).filter(
    (name) => policyOf(name) === "promote" || promoting.includes(name),
  );
  const wrong = names.flatMap((name) =>
    (gradientCases[name]?.cases ?? [])
      .filter(({ inputs }) => inputs.length > 1)
      .flatMap(({ inputs, apply }) =>
        inputs.flatMap((_, wide) => {
          const runtime = cpuRuntime();
          const tensors = inputs.map(({ shape, values }, i) =>
            runtime.tensor(values, shape, { dtype: i === wide ? "float32" : "float16" }),
          );
          const run = () => apply(tensors, runtime).dtype;
          const dtypes = [run(), autocast({ dtype: "float16" }, run)];
          return dtypes.join() === "float32,float32" ? [] : [`${name}, ${wide}: ${dtypes}`];
        }),
      ),
  );
  expect(wrong).toEqual([]);
  expect(names).toContain("addcmul");
});
