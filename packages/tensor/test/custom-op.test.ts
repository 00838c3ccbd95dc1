import { readFileSync } from "node:fs";
import * as autocastModule from "@halfstep/autocast";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import * as kernels from "@halfstep/kernels";
import { transformSync } from "esbuild";
import { expect, test } from "vitest";
import * as tensor from "../src/index.js";
import {
  cpuRuntime,
  defineOp,
  gpuRuntime,
  type Op,
  type Operand,
  type Runtime,
  type Tensor,
} from "../src/index.js";

const tiers = await testTiers();

/** The README's example without its types, and its stated output. */
function readme(): { code: string; output: string } {
  const text = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const match = /^<!-- example -->\n```ts\n(.*?)^```\n\n```text\n(.*?)^```/ms.exec(text);
  if (!match) throw new Error("README.md has no example with output");
  const [, typed, output] = match as unknown as [string, string, string];
  return { code: transformSync(typed, { loader: "ts", target: "esnext" }).code, output };
}

/** Runs the example on a given device and returns its output. */
async function runExample(requestDevice: () => Promise<unknown>): Promise<string> {
  const { code } = readme();
  const printed: string[] = [];
  const modules = {
    "@halfstep/autocast": autocastModule,
    "@halfstep/device/node": { requestDevice },
    "@halfstep/kernels": kernels,
    "@halfstep/tensor": tensor,
  };
  const body = code.replace(
    /^import (\{[^}]*\}) from ("[^"]+");$/gm,
    (_, members: string, specifier: string) => `const ${members} = modules[${specifier}];`,
  );
  const AsyncFunction = runExample.constructor as new (
    ...source: string[]
  ) => (modules: object, console: object) => Promise<void>;
  await new AsyncFunction("modules", "console", body)(modules, {
    log: (...values: unknown[]) => printed.push(`${values.join(" ")}\n`),
  });
  return printed.join("");
}

test.each(tiers)("the README's example prints what it says: GPU, %s", async (tier) => {
  expect(await runExample(() => requestTestDevice({ tier }))).toBe(readme().output);
});

test("the README's example prints what it says: CPU", async () => {
  const refuse = (): Promise<never> => Promise.reject(new Error("no adapter"));
  expect(await runExample(refuse)).toBe(readme().output);
});

/** x³ as an expression, which can be fused. */
const cube: kernels.Expression = {
  name: "cube",
  arity: 1,
  wgsl: ([x]) => `${x} * ${x} * ${x}`,
  evaluate: ([x]: ArrayLike<number> & Iterable<number>) => (x as number) ** 3,
};

const cubed: Op<null> = defineOp<null>({
  name: "cube",
  castPolicy: "none",
  shape: ([x]) => (x ? [x] : []),
  forward({ target, inputs, outputs }) {
    target.launch(kernels.elementwise(cube, inputs, outputs[0] as Operand));
  },
  backward: ({ inputs: [x], gradients: [g] }) => [g?.mul((x as Tensor).square().mul(3))],
});

const runtimes: readonly [string, () => Promise<Runtime>][] = [
  ["CPU", async () => cpuRuntime()],
  ...tiers.map((tier): [string, () => Promise<Runtime>] => [
    `GPU, ${tier}`,
    async () => gpuRuntime(await requestTestDevice({ tier })),
  ]),
];

test.each(runtimes)(
  "an expression of one's own is fused, cast, and differentiated twice: %s",
  async (_, open) => {
    const runtime = await open();
    const x = runtime.variable([1, 2, -3], [3], { requiresGrad: true, dtype: "float16" });
    const [y, first, second] = await runtime.step(() => {
      const y = cubed.apply([x.mul(2)], null).add(1);
      const [first] = tensor.grad(y.sum(), [x], { createGraph: true });
      const [second] = tensor.grad((first as Tensor).sum(), [x]);
      return [y, first as Tensor, second as Tensor];
    });
    // y = 8 x³ + 1, y' = 24 x², y'' = 48 x: whole numbers that float16 holds.
    expect(y?.dtype).toBe("float16");
    expect([...((await y?.toArray()) ?? [])]).toEqual([9, 65, -215]);
    expect([...((await first?.toArray()) ?? [])]).toEqual([24, 96, 216]);
    expect([...((await second?.toArray()) ?? [])]).toEqual([48, 96, -144]);
    const fused = runtime.lastPlan?.launches.map(({ launch }) => launch.kernel.name) ?? [];
    expect(fused.some((name) => name.includes("cube+addScalar"))).toBe(true);
  },
);

test("an op of one's own follows its cast policy", async () => {
  const runtime = cpuRuntime();
  const lowered: Op<null> = defineOp<null>({ ...cubed, castPolicy: "lowerPrecision" });
  const x = runtime.tensor([1 + 2 ** -12, 3]);
  const [inside, outside, overridden] = await runtime.step(() => {
    const { autocast } = autocastModule;
    return [
      autocast({ dtype: "bfloat16" }, () => lowered.apply([x], null)),
      lowered.apply([x], null),
      autocast({ dtype: "float16", policies: { cube: "float32" } }, () => lowered.apply([x], null)),
    ];
  });
  expect([inside?.dtype, outside?.dtype, overridden?.dtype]).toEqual([
    "bfloat16",
    "float32",
    "float32",
  ]);
  expect(await inside?.toArray()).toEqual(Float32Array.of(1, 27));
});
