import { describe, expect, test } from "vitest";
import {
  type AddedRows,
  type CarriedPart,
  cpuRuntime,
  defineHostOp,
  embedding,
  type FlatVariables,
  flatten,
  type HostFunction,
  hostLaunch,
  linear,
  type Runtime,
  type RuntimeOptions,
  type Tensor,
  type Variable,
} from "../../index.js";

// Gradients of embeddings in steps with a host op that adds rows itself.

const [words, features] = [40, 8];
const tokens = Uint32Array.of(3, 39, 3, 0, 7, 3);

const read = (name: string) => ({ name, access: "read" as const });

/** Leaves numbers as they are: the rest is kept, and the rows are added to it. */
function summing(leastBytes: number, addsRows: boolean) {
  const kept = new Map<number, Float32Array>();
  const op = defineHostOp({
    name: "sum",
    bindings: [{ name: "x", access: "readwrite" }],
    division: {
      ...{ parts: 4, leastBytes },
      carry: (binding) => ({
        ...{ before: [], after: [] },
        operands: [{ binding, role: { name: "x", access: "readwrite" } }],
      }),
      ...(addsRows && {
        carryRows: <B>({ sum, index, rows }: AddedRows<B>, stage: string): CarriedPart<B> => ({
          ...{ before: [], after: [] },
          operands:
            stage === "rest"
              ? [{ binding: sum, role: read("rest") }]
              : [
                  { binding: index, role: read("index") },
                  { binding: rows, role: read("rows") },
                  { binding: sum, role: { name: "sum", access: "write" } },
                ],
        }),
      }),
    },
  });
  const call: HostFunction = async ([first, second, third], part) => {
    if (!part.rows) return;
    const numbersOf = (bytes = new Uint8Array()) =>
      new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    if (part.rows.stage === "rest") return void kept.set(part.offset, numbersOf(first).slice());
    const { width } = part.rows;
    const [sum, rows] = [numbersOf(third), numbersOf(second)];
    sum.set(kept.get(part.offset) ?? new Float32Array(sum.length));
    const index = new Uint32Array((first as Uint8Array).buffer);
    for (const [i, place] of index.entries())
      for (let c = 0; c < width; c++)
        sum[place * width + c] =
          (sum[place * width + c] as number) + (rows[i * width + c] as number);
  };
  return { op, call };
}

interface Setting {
  readonly runtime: Runtime;
  readonly table: Variable;
  readonly weight: Variable;
  readonly flat: FlatVariables;
}

function open(options: RuntimeOptions = {}, dtype: "float32" | "float16" = "float32"): Setting {
  const runtime = cpuRuntime(options);
  const made = (rows: number, seed: number) =>
    runtime.variable(
      Float32Array.from({ length: rows * features }, (_, i) => Math.sin(seed + i * 12.9898)),
      [rows, features],
      { requiresGrad: true, dtype },
    );
  const [table, weight] = [made(words, 1), made(features, 2)];
  return { runtime, table, weight, flat: flatten([table, weight]) };
}

/** A loss of a table that a last product uses, too. */
const tied = ({ runtime, table, weight }: Setting): Tensor =>
  linear(linear(embedding(runtime.tensor(tokens), table), weight), table)
    .mul(0.1)
    .exp()
    .sum();

const untied = ({ runtime, table, weight }: Setting): Tensor =>
  linear(embedding(runtime.tensor(tokens), table), weight)
    .mul(0.1)
    .exp()
    .sum();

interface StepOptions {
  readonly leastBytes?: number;
  readonly addsRows?: boolean;
  /** Called between the backward pass and the host op. */
  readonly between?: (setting: Setting) => unknown;
}

const stepOf =
  (
    setting: Setting,
    lossOf: (setting: Setting) => Tensor,
    { leastBytes = 500, addsRows = true, between }: StepOptions = {},
  ) =>
  () => {
    const { runtime, flat } = setting;
    const { op, call } = summing(leastBytes, addsRows);
    lossOf(setting).backward();
    const kept = between?.(setting);
    const { gradients: buffer } = flat;
    const whole = { buffer, offset: 0, length: buffer.byteLength / 4, dtype: "float32" } as const;
    runtime.target.launch(hostLaunch(op, [whole], call));
    return kept;
  };

const stagesOf = (setting: Setting, step: () => unknown) =>
  setting.runtime
    .plan(() => {
      step();
    })
    .hostOps.map(({ part }) => part.rows?.stage ?? `${part.offset}+${part.length}`);

const addsRows = (setting: Setting, step: () => unknown): boolean =>
  setting.runtime
    .plan(() => {
      step();
    })
    .launches.some(({ launch }) => launch.kernel.name.startsWith("addSegments"));

describe("the gradient of an embedding", () => {
  test("that a last product uses, too, is carried out before its rows", () => {
    const setting = open();
    const step = stepOf(setting, tied);
    expect(stagesOf(setting, step)).toEqual(["rest", "320+192", "rows"]);
    expect(addsRows(setting, step)).toBe(false);
  });

  test("alone is rows", () => {
    const setting = open();
    const step = stepOf(setting, untied);
    expect(stagesOf(setting, step)).toEqual(["320+192", "rows"]);
    expect(addsRows(setting, step)).toBe(false);
  });

  test.each<[string, Partial<StepOptions>, "float32" | "float16"]>([
    ["in 16 bits", {}, "float16"],
    ["that is small", { leastBytes: words * features * 4 }, "float32"],
    ["for an op that does not add rows", { addsRows: false }, "float32"],
    [
      "that is read before the op",
      { between: ({ table }) => table.grad?.mul(2).keep() },
      "float32",
    ],
    [
      "that is changed before the op",
      { between: ({ table }) => table.grad?.assign(table.grad.mul(2)) },
      "float32",
    ],
  ])("%s is one part with its rows", (_, options, dtype) => {
    const setting = open({}, dtype);
    const step = stepOf(setting, tied, options);
    expect(stagesOf(setting, step)).toEqual(expect.not.arrayContaining(["rows"]));
    expect(addsRows(setting, step)).toBe(true);
  });

  test.each([
    ["float32", {}],
    ["with all results searched", { provenance: "always" }],
    ["with all stores counted", { underflow: "always" }],
    ["without passes", { passes: [] }],
    ["divided, and with no other pass", { passes: ["divideHostOps"] }],
  ] as const)("has the same numbers: %s", async (_, options) => {
    for (const lossOf of [tied, untied]) {
      const [apart, whole] = [open(options), open({ passes: [] })];
      // Two backward passes in one step, and a third one in the next.
      for (const setting of [apart, whole]) {
        await setting.runtime.step(() => {
          lossOf(setting).mul(0.5).backward();
          return stepOf(setting, lossOf)();
        });
        await setting.runtime.step(stepOf(setting, lossOf));
      }
      for (const name of ["table", "weight"] as const) {
        const right = [...((await whole[name].grad?.toArray()) ?? [])];
        const found = [...((await apart[name].grad?.toArray()) ?? [])];
        expect(right.length).toBeGreaterThan(0);
        for (const [i, each] of found.entries()) expect(each).toBeCloseTo(right[i] as number, 4);
      }
    }
  });
});
