import { autocast, type CastPolicies } from "@halfstep/autocast";
import { expect, test } from "vitest";
import { cpuRuntime, exp, linear, type OpTrace, RecordingError, traceOps } from "../index.js";

test("ops are reported with what autocast decided, in backward passes too", () => {
  const runtime = cpuRuntime();
  const x = runtime.variable(Float32Array.of(1, 2), [1, 2], { requiresGrad: true });
  const seen: OpTrace[] = [];
  traceOps(
    (trace) => seen.push(trace),
    () => {
      const y = autocast({ dtype: "float16", policies: { exp: "none" } }, () =>
        x.matmul(x.reshape([2, 1])).exp(),
      );
      y.sum().backward();
    },
  );
  x.exp();
  const line = ({ op, policy, ownPolicy, inputs, cast, outputs }: OpTrace): string =>
    `${op} ${ownPolicy}>${policy} ${inputs.map(({ dtype }) => dtype)}>${cast}>${outputs}`;
  const lines = seen.map(line);
  expect(lines).toContain(
    "matmul lowerPrecision>lowerPrecision float32,float32>float16,float16>float16",
  );
  expect(lines).toContain("exp float32>none float16>float16>float16");
  expect(lines.filter((each) => each.startsWith("mul ")).length).toBeGreaterThan(0);
  expect(lines.filter((each) => each.startsWith("exp ")).length).toBe(1);
});

test("a composite is reported as one op where it is cast as one", () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2], [1, 2]);
  const opsOf = (policies: CastPolicies): readonly string[] => {
    const seen: string[] = [];
    traceOps(
      ({ op, cast, outputs }) => seen.push(`${op} ${cast} ${outputs}`),
      () => autocast({ dtype: "bfloat16", policies }, () => linear(x, x, runtime.tensor([1]))),
    );
    return seen;
  };
  expect(opsOf({})).toEqual(["linear bfloat16,bfloat16,bfloat16 bfloat16"]);
  expect(opsOf({ linear: "none" }).map((line) => line.split(" ")[0])).toEqual(["matmul", "add"]);
});

test("launches of a plan have the decisions of their ops, composites as one", () => {
  const runtime = cpuRuntime({ passes: [] });
  const x = runtime.variable(Float32Array.of(1, 2), [1, 2], { requiresGrad: true });
  const bias = runtime.variable(Float32Array.of(0), [1], { requiresGrad: true });
  const { launches } = runtime.plan(() => {
    autocast({ dtype: "float16" }, () => linear(x, x, bias).exp())
      .sum()
      .backward();
  });
  const lines = launches.flatMap(({ note }) =>
    (note?.ops ?? []).map(
      ({ op, backwardOf, decision }) =>
        `${backwardOf ? `${op} for ${backwardOf}` : op}: ${decision && `${decision.policy} ${decision.cast}`}`,
    ),
  );
  expect(lines).toContain("cast: undefined");
  expect(lines).toContain("linear: lowerPrecision float16,float16,float16");
  expect(lines).not.toContain("matmul: lowerPrecision float16,float16");
  expect(lines).toContain("exp: float32 float32");
  expect(lines).toContain("matmul for linear: lowerPrecision float16,float16");
});

test("a dry run computes nothing and changes nothing", async () => {
  const runtime = cpuRuntime();
  const x = runtime.variable(Float32Array.of(1), [1]);
  const before = runtime.lastPlan;
  const { shape, y } = runtime.dryRun(() => {
    const y = x.mul(2);
    x.assign(y);
    return { shape: y.shape, y };
  });
  expect(shape).toEqual([1]);
  expect(Array.from(await x.toArray())).toEqual([1]);
  expect(runtime.lastPlan).toBe(before);
  expect(() => y.add(1)).toThrow("after the step");
  expect(() =>
    runtime.dryRun(() => {
      throw new Error("inside");
    }),
  ).toThrow("inside");
  expect(() => runtime.dryRun((() => Promise.resolve()) as never)).toThrow("returned a promise");
  await expect(runtime.step(() => runtime.dryRun(() => {}))).rejects.toThrow(RecordingError);
  expect(Array.from(await x.toArray())).toEqual([1]);
});

test("a trace of what is inside composites leads from arguments to results", () => {
  const runtime = cpuRuntime();
  const x = runtime.tensor([1, 2, 3, 4], [2, 2]);
  const weight = runtime.variable(Float32Array.of(1, 2, 3, 4), [2, 2]);
  const known = new Set<unknown>([x, weight]);
  const seen: OpTrace[] = [];
  const wholes: string[] = [];
  const result = runtime.dryRun(() =>
    traceOps(
      ({ op }) => wholes.push(op),
      () =>
        traceOps(
          (trace) => {
            expect(trace.operands.every((operand) => known.has(operand))).toBe(true);
            for (const each of trace.results) known.add(each);
            seen.push(trace);
          },
          () =>
            autocast({ dtype: "float16" }, () =>
              linear(x, weight).reshape([4]).detach().exp().permute([0]),
            ),
          { inside: true },
        ),
    ),
  );
  expect(known.has(result)).toBe(true);
  const lines = seen.map(({ op, attributes }) => `${op} ${JSON.stringify(attributes)}`);
  expect(lines).toEqual([
    ...['cast "float16"', 'cast "float16"', 'matmul {"transB":true}', "reshape [4]", "reshape [4]"],
    ...['cast "float32"', "exp null", "permute [0]"],
  ]);
  expect(seen[6]?.definition).toBe(exp.definition);
  expect(seen[6]?.definition.pointwise?.expression.name).toBe("exp");
  expect(wholes).toEqual(["linear", "exp", "permute"]);
});
