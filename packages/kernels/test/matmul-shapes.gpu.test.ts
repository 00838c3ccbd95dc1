import type {
  Binding,
  DType,
  HalfDType,
  Hardware,
  KernelView,
  LaunchTarget,
} from "@halfstep/device";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { describe, expect, it } from "vitest";
import { type MatmulAttributes, matmul } from "../src/matmul.js";
import { runOnCpu, runOnGpu, testValues, tiersInLanes, withHardware } from "./harness.js";

// Many shapes through few pipelines: a product's program depends on its layout, and sizes are numbers that it reads.

interface Shape extends MatmulAttributes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

const layouts = [
  { transA: false, transB: false },
  { transA: false, transB: true },
  { transA: true, transB: false },
  { transA: true, transB: true },
] as const;

/** Sizes in 1 … 130, mostly drawn, and both sides of every edge of a tile or a block; layouts in turn. */
function draw(count: number, seed: number): Shape[] {
  let state = seed;
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  const edges = [1, 2, 4, 8, 16, 32, 64, 128]
    .flatMap((edge) => [edge - 1, edge, edge + 1])
    .slice(1);
  const size = (): number =>
    below(3) === 0 ? (edges[below(edges.length)] as number) : 1 + below(130);
  return Array.from({ length: count }, (_, i) => ({
    m: size(),
    n: size(),
    k: size(),
    ...layouts[i % layouts.length],
  }));
}

/** Drawn shapes that need no more than so many programs, the commonest. */
function shapesOf(count: number, programs: number, wants: (shape: Shape) => boolean = () => true) {
  const byProgram = new Map<string, Shape[]>();
  for (const shape of draw(20 * count, 2).filter(wants)) {
    const program = programOf(shape);
    byProgram.set(program, [...(byProgram.get(program) ?? []), shape]);
  }
  const commonest = [...byProgram.values()].sort((x, y) => y.length - x.length).slice(0, programs);
  return commonest.flat().slice(0, count);
}

function programOf(shape: Shape): string {
  const { m, n, k } = shape;
  const bind = (length: number) =>
    ({ buffer: undefined, offset: 0, length, dtype: "float32" }) as const;
  let program = "";
  const recorder: LaunchTarget<undefined> = {
    allocate: () => undefined,
    launch({ kernel }) {
      if (kernel.name === "matmul") program = kernel.variant.replace(/,(medium|large)$/, "");
    },
  };
  matmul(recorder, { a: bind(m * k), b: bind(k * n), out: bind(m * n) }, shape);
  return program;
}

// The largest product of any shape, with room for 256-byte alignment of the operands.
const longest = 130 * 130 + 64;

/** What is wrong with one element in each row and column of a product, by its definition; values are multiples of 2^-7. */
function wrongOf(
  { m, n, k, transA, transB }: Shape,
  a: ArrayLike<number>,
  b: ArrayLike<number>,
  out: ArrayLike<number>,
  round: (x: number) => number,
): string | undefined {
  for (let e = 0; e < Math.max(m, n); e++) {
    // Every row and column, the corners included.
    const i = e < m ? e : m - 1;
    const j = (e < n ? n - 1 - e : 0) % n;
    let sum = 0;
    for (let p = 0; p < k; p++)
      sum +=
        (a[transA ? p * m + i : i * k + p] as number) *
        (b[transB ? j * k + p : p * n + j] as number);
    if (out[i * n + j] !== round(sum))
      return `[${i}, ${j}] is ${out[i * n + j]} instead of ${round(sum)}`;
  }
  return undefined;
}

const title = ({ m, n, k, transA, transB }: Shape): string =>
  `[${m},${k}]${transA ? "ᵀ" : ""}·[${k},${n}]${transB ? "ᵀ" : ""}`;

/** Runs shapes on one pair of factors, each into its own part of one result, and lists what is wrong. */
async function check(
  shapes: readonly Shape[],
  storage: "float32" | HalfDType,
  run: (
    operands: { a: Operand; b: Operand; out: Operand },
    launches: <B>(target: LaunchTarget<B>, bindings: Record<"a" | "b" | "out", Binding<B>>) => void,
  ) => Promise<KernelView>,
): Promise<string[]> {
  const a = testValues(longest, 1);
  const b = testValues(longest, 2);
  const starts: number[] = [];
  let length = 0;
  for (const { m, n } of shapes) {
    starts.push(length);
    length += Math.ceil((m * n) / 128) * 128;
  }
  const out = await run(
    {
      a: { values: a, dtype: storage },
      b: { values: b, dtype: storage },
      out: { values: length, dtype: "float32" },
    },
    (target, bindings) => {
      for (const [s, shape] of shapes.entries()) {
        const { m, n, k } = shape;
        const part = (name: "a" | "b", elements: number) => ({
          ...bindings[name],
          length: elements,
        });
        matmul(
          target,
          {
            a: part("a", m * k),
            b: part("b", k * n),
            out: { ...bindings.out, offset: (starts[s] as number) * 4, length: m * n },
          },
          shape,
        );
      }
    },
  );
  return shapes.flatMap((shape, s) => {
    const start = starts[s] as number;
    const values = out.subarray(start, start + shape.m * shape.n);
    const wrong = wrongOf(shape, a, b, values, Math.fround);
    return wrong ? [`${title(shape)}: ${wrong}`] : [];
  });
}

interface Operand {
  readonly values: ArrayLike<number> | number;
  readonly dtype: DType;
}

it("2,000 shapes equal the definition on the CPU", async () => {
  const wrong = await check(
    draw(2000, 1),
    "float32",
    async (operands, launches) => runOnCpu(operands, launches).out,
  );
  expect(wrong).toEqual([]);
});

const blocks: Hardware = {
  class: "a real one",
  workgroupBytes: 32_768,
  workgroupInvocations: 256,
  matrixSubgroupSize: 0,
  subgroupMatrices: [],
};

describe.each(await testTiers())("on the GPU (%s)", (tier) => {
  it.each([
    ["float32", 2000, 8],
    ["float16", 500, 4],
  ] as const)("shapes of %s equal the definition", async (storage, count, programs) => {
    const device = await requestTestDevice({ tier });
    const shapes = shapesOf(count, programs);
    expect(shapes.length).toBe(count);
    const wrong = await check(
      shapes,
      storage,
      async (operands, launches) => (await runOnGpu(device, operands, launches)).out,
    );
    expect(wrong).toEqual([]);
  });
});

describe.each(await tiersInLanes())("in programs for GPUs (%s)", (tier) => {
  it("shapes equal the definition by blocks in workgroup memory", async () => {
    const device = await requestTestDevice({ tier });
    const shapes = shapesOf(500, 4, ({ m, n, k }) => m >= 32 && n >= 32 && k >= 16);
    expect(shapes.length).toBe(500);
    const wrong = await check(
      shapes,
      "float32",
      async (operands, launches) =>
        (
          await runOnGpu(device, operands, (target, bindings) =>
            launches(withHardware(target, blocks), bindings),
          )
        ).out,
    );
    expect(wrong).toEqual([]);
  });
});
