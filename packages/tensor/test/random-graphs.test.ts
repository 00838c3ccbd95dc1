import { DTypeError } from "@halfstep/autocast";
import type { HalfDType } from "@halfstep/device";
import { accumulate } from "@halfstep/kernels";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  cpuRuntime,
  defineHostOp,
  Generator,
  hostLaunch,
  type Runtime,
  ShapeError,
  type Tensor,
  type Variable,
} from "../src/index.js";
import { allPasses, type PassName } from "../src/internals.js";
import * as ops from "../src/ops/index.js";
import { assignMemory } from "../src/plan/assign-memory.js";
import type { Pass, PlanGraph } from "../src/plan/graph.js";
import { planHostOps } from "../src/plan/host-ops.js";
import { foldCasts } from "../src/plan/passes/fold-casts.js";
import { fuseElementwise } from "../src/plan/passes/fuse-elementwise.js";
import { fuseEpilogues } from "../src/plan/passes/fuse-epilogues.js";
import { narrowStorage } from "../src/plan/passes/narrow-storage.js";
import { rematerializeSums } from "../src/plan/passes/rematerialize-sums.js";
import { removeDeadLaunches } from "../src/plan/passes/remove-dead-launches.js";
import { graphOf } from "../src/plan/plan.js";
import { hasConflict } from "../src/record/bindings.js";
import { memoryMistakes } from "./graphs.js";

// The as-if rule on random programs: passes change no bit, and memory plans stay valid.

/** One line of a random program. Operands count back from the latest of the values so far. */
interface Line {
  readonly kind: (typeof kinds)[number];
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

const kinds = [
  "scale",
  "addScalar",
  "square",
  "relu",
  "add",
  "sub",
  "mul",
  "float16",
  "bfloat16",
  "float32",
  "sum",
  "mean",
  "matmul",
  "reshape",
  "expand",
  "permute",
  "where",
  "maskedFill",
  "pastEnd",
  "cat",
  "cumsum",
  "dropout",
  "assign",
  "assignUnless",
  "accumulate",
  "hostOp",
  "hostSum",
  "keep",
  "backward",
] as const;

// Mostly the latest values, so that casts meet fusable neighbours, and many casts and assignments, which passes handle
// specially.
const back = fc.oneof({ weight: 3, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(12) });
const risky = fc.constantFrom<Line["kind"]>(
  "add",
  "float16",
  "float32",
  "assign",
  "accumulate",
  "hostOp",
);
const line: fc.Arbitrary<Line> = fc.record({
  kind: fc.oneof(fc.constantFrom(...kinds), risky),
  a: back,
  b: back,
  c: fc.constantFrom(-1.5, -0.3, 0, 0.7, 1, 3.1),
});
const program = fc.array(line, { minLength: 3, maxLength: 20 });
const passSubset = fc.subarray([...allPasses]);

/** Exchanges neighbouring bytes, and takes its time. */
const reversing = defineHostOp({
  name: "reverse",
  bindings: [{ name: "x", access: "readwrite" }],
});
const adding = defineHostOp({
  name: "add bytes",
  bindings: [
    { name: "x", access: "read" },
    { name: "y", access: "readwrite" },
  ],
});
const later = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve));

interface State {
  readonly values: Tensor[];
  readonly variables: readonly Variable[];
}

function apply({ kind, a, b, c }: Line, { values, variables }: State): Tensor | undefined {
  const x = values[values.length - 1 - (a % values.length)] as Tensor;
  const y = values[values.length - 1 - (b % values.length)] as Tensor;
  const v = variables[b % variables.length] as Variable;
  switch (kind) {
    case "scale":
      return x.mul(c);
    case "addScalar":
      return x.add(c);
    case "square":
    case "relu":
      return x[kind]();
    case "add":
    case "sub":
    case "mul":
      return x[kind](y);
    case "float16":
    case "bfloat16":
    case "float32":
      return x.to(kind satisfies HalfDType | "float32");
    case "sum":
    case "mean":
      return x[kind](b % 2, { keepDimensions: c > 0 });
    case "matmul":
      return x.matmul(y, { transA: c > 0, transB: c > 1 });
    case "reshape":
      return x.reshape(b % 2 === 0 ? [-1] : [4, -1]);
    case "expand":
      return x.expand([2, ...x.shape]);
    case "permute":
      return x.permute([1, 0]);
    case "where":
      return x.where(x.gt(y), y);
    case "maskedFill":
      return x.maskedFill(y.le(c).logicalNot(), c);
    case "pastEnd":
      return ops.pad(
        x,
        [
          [0, 0],
          [-1, 1],
        ].slice(0, x.rank) as [number, number][],
        c,
      );
    case "cat":
      return ops.cat([x, y], -1).narrow(-1, b % 2, x.shape.at(-1) ?? 0);
    case "cumsum":
      return x.cumsum(b % 2);
    case "dropout":
      return x.dropout({ generator: new Generator(b) });
    case "assign":
      v.assign(x);
      return undefined;
    case "assignUnless":
      v.assign(x, { unless: y.to("float32").reshape([]) });
      return undefined;
    case "accumulate":
      // In place on a transient or a variable: ops never do this, but custom kernels may.
      if (x.size !== y.size || x.storage === y.storage || x.storage.hostData) return undefined;
      x.runtime.target.launch(accumulate({ input: y.operand(), out: x.operand() }));
      return undefined;
    case "hostOp":
      if (x.storage.hostData) return undefined;
      x.runtime.target.launch(
        hostLaunch(reversing, [x.operand()], async ([bytes]) => {
          await later();
          bytes?.reverse();
        }),
      );
      return undefined;
    case "hostSum":
      if (x.size !== y.size || y.storage.hostData) return undefined;
      x.runtime.target.launch(
        hostLaunch(adding, [x.operand(), y.operand()], async ([from, to]) => {
          await later();
          for (const i of to?.keys() ?? []) if (to) to[i] = (to[i] ?? 0) ^ (from?.[i] ?? 0);
        }),
      );
      return undefined;
    case "keep":
      x.keep();
      return undefined;
    case "backward":
      if (x.requiresGrad) x.sum().backward({ retainGraph: true });
      return undefined;
  }
}

/** Runs a program for two steps, which differ in data and numbers, and returns every bit that outlives them. */
async function run(lines: readonly Line[], runtime: Runtime): Promise<string> {
  const numbers = (length: number, seed: number): number[] =>
    Array.from({ length }, (_, i) => Math.sin(seed + 3.7 * i) * 2);
  const variable = (shape: readonly [number, number], seed: number): Variable =>
    runtime.variable(numbers(8, seed), shape, { requiresGrad: true });
  const variables = [
    variable([2, 4], 1),
    variable([2, 4], 2),
    runtime.variable(numbers(4, 3), [4], { dtype: "float16", requiresGrad: true }),
  ];
  const outlived: Tensor[] = [];
  for (let step = 0; step < 2; step++)
    await runtime.step(() => {
      const input = runtime.tensor(numbers(8, 9 + step), [2, 4]);
      const flag = runtime.tensor([step]).mul(1);
      const values: Tensor[] = [...variables, input, flag];
      for (const each of lines)
        try {
          const value = apply({ ...each, c: each.c + step }, { values, variables });
          if (value) values.push(value);
        } catch (error) {
          // Operands that do not fit are refused in every run alike.
          if (!(error instanceof ShapeError || error instanceof DTypeError)) throw error;
        }
      const last = values.at(-1) as Tensor;
      outlived.push(last.mul(1).keep(), ...values.filter(({ storage: s }) => isKept(runtime, s)));
      checkPlanning(runtime);
      return 0;
    });
  const gradients = variables.flatMap(({ grad }) => grad ?? []);
  const arrays: Uint8Array[] = [];
  for (const tensor of [...outlived, ...variables, ...gradients]) {
    const values = await tensor.toArray();
    arrays.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return Buffer.concat(arrays).toString("hex");
}

const isKept = ({ recording }: Runtime, storage: Tensor["storage"]): boolean =>
  recording.kept.has(storage);

const stages: readonly Pass[] = [
  (graph) => graph,
  removeDeadLaunches,
  foldCasts,
  narrowStorage,
  rematerializeSums,
  fuseElementwise,
  fuseEpilogues,
];

/** Plans the open recording pass by pass, and checks each stage by simulation. */
function checkPlanning({ recording }: Runtime): void {
  const recorded = graphOf(recording);
  const hostOps = planHostOps(recorded, recorded, true);
  let graph = hostOps.prepared;
  for (const pass of [...stages, (last: PlanGraph) => hostOps.arranged(last)]) {
    graph = pass(graph);
    // No pass drops, moves or changes a function of the host.
    expect(hostOps.listed(graph.nodes).map((op) => op.recorded)).toEqual(
      hostOps.listed(recorded.nodes).map((op) => op.recorded),
    );
    for (const reuse of [false, true])
      expect(memoryMistakes(graph, assignMemory(graph, reuse))).toEqual([]);
    expect(graph.nodes.filter(({ launch, part }) => !part && hasConflict(launch))).toEqual([]);
    expect(graph.nodes.filter(({ launch }) => launch.bindings.length > 8)).toEqual([]);
  }
}

test("passes change no bit of a random program, and break no rule of memory", async () => {
  const worked = { casts: 0, launches: 0, bytes: 0 };
  await fc.assert(
    fc.asyncProperty(program, passSubset, async (lines, passes: readonly PassName[]) => {
      const runtime = cpuRuntime({ passes });
      const plain = cpuRuntime({ passes: [] });
      const bits = await run(lines, runtime);
      expect(bits).toBe(await run(lines, plain));
      const [planned, recorded] = [runtime.lastPlan?.statistics, plain.lastPlan?.statistics];
      if (!planned || !recorded) return;
      worked.casts += recorded.casts - planned.casts;
      worked.launches += recorded.launches - planned.launches;
      worked.bytes += recorded.peakBytes - planned.peakBytes;
    }),
    { numRuns: 400 },
  );
  // The programs exercise every pass.
  expect(worked.casts).toBeGreaterThan(50);
  expect(worked.launches).toBeGreaterThan(300);
  expect(worked.bytes).toBeGreaterThan(50_000);
});
