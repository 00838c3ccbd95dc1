import * as autocast from "@halfstep/autocast";
import * as data from "@halfstep/data";
import * as dataInNode from "@halfstep/data/node";
import * as philox from "@halfstep/formats/philox";
import * as gradScaler from "@halfstep/grad-scaler";
import * as models from "@halfstep/models";
import * as optim from "@halfstep/optim";
import * as tensor from "@halfstep/tensor";
import { expect, test } from "vitest";
import { readState } from "../site/url-state.js";
import { configFields, type TrainConfig } from "./config.js";
import { Loop } from "./loop.js";
import { loopCode } from "./loop-code.js";
import { setupOf } from "./setups.js";
import { moonsTask } from "./tasks/moons.js";
import { textTask } from "./tasks/text.js";

const initial = readState(configFields, "");
const { cpuRuntime } = tensor;

/** What programs import, with a CPU in the place of the GPU. */
const modules = {
  "@halfstep/autocast": autocast,
  "@halfstep/data": data,
  "@halfstep/data/node": { ...dataInNode, packageDirectory },
  "@halfstep/device/node": { requestDevice: async () => undefined },
  "@halfstep/formats/philox": philox,
  "@halfstep/grad-scaler": gradScaler,
  "@halfstep/models": models,
  "@halfstep/optim": optim,
  "@halfstep/tensor": { ...tensor, gpuRuntime: () => cpuRuntime() },
};

/** A program that is run as a function has no address of its own. */
function packageDirectory(name: string): string {
  return dataInNode.packageDirectory(name, import.meta.url);
}

type Program = (all: typeof modules, console: { log(step: number, loss: number): void }) => unknown;

/** The losses that a program prints. */
async function losses(code: string): Promise<readonly number[]> {
  const body = code
    .replaceAll(/^import (\{.*\}) from (".*");$/gm, "const $1 = modules[$2];")
    .replaceAll("import.meta.url", '""');
  const AsyncFunction = (async () => {}).constructor as new (...parts: string[]) => Program;
  const found: number[] = [];
  const log = (step: number, loss: number) => expect(found.push(loss)).toBe(step + 1);
  await new AsyncFunction("modules", "console", body)(modules, { log });
  return found;
}

/** The losses that the page draws. */
async function lossesOfPage(config: TrainConfig, id: Parameters<typeof setupOf>[0], steps: number) {
  using runtime = cpuRuntime();
  const makeTask = { moons: moonsTask, text: textTask, digits: undefined }[config.task];
  if (!makeTask) throw new TypeError("the page has other digits");
  const loop = new Loop(runtime, setupOf(id), config, makeTask);
  const found: number[] = [];
  for (let step = 0; step < steps; step++) {
    using loss = await runtime.step(() => loop.record(step));
    found.push(await loss.item());
  }
  return found;
}

test.each([
  [{ task: "moons", seed: 3 }, "float32", 4],
  [{ task: "moons", shrink: 18, gain: 2 }, "float16", 4],
  [{ task: "moons", shrink: 14 }, "float16-fixed", 4],
  [{ task: "moons", shrink: 14 }, "float16-unscaled", 4],
  [{ task: "moons", lr: 2e-5 }, "bfloat16-plain", 4],
  [{ task: "text" }, "bfloat16", 1],
] as const)("the program of %j in %s computes the page's losses", async (chosen, id, steps) => {
  const config = { ...initial, ...chosen };
  const printed = await losses(loopCode(config, setupOf(id), steps));
  expect(printed).toEqual(await lossesOfPage(config, id, steps));
  expect(printed).toHaveLength(steps);
});

test("the program of digits trains on MNIST", async () => {
  const code = loopCode({ ...initial, task: "digits" }, setupOf("float16"), 1);
  const [loss] = await losses(code);
  expect(loss).toBeGreaterThan(1.5);
  expect(loss).toBeLessThan(4);
});

test("a program reads like one that people write", () => {
  const config = { ...initial, shrink: 18, gain: 2 };
  const code = loopCode(config, setupOf("float16"), 500);
  expect(code.slice(code.indexOf("// In a browser"))).toMatchInlineSnapshot(`
    "// In a browser: requestDevice of "@halfstep/device".
    const runtime = gpuRuntime(await requestDevice());
    const model = new Mlp(runtime, { sizes: [2, 32, 32, 2], seed: 0 });
    const groups = flattenByDType(model.parameters()).map((params) => ({ params }));
    const optimizer = new Adam(runtime.target, groups, { lr: 0.01 });
    const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 2 ** 16, growthInterval: 200 });

    let step = 0;
    for (const { inputs, shape, labels } of batches()) {
      const loss = await runtime.step(() => {
        const x = runtime.tensor(inputs, shape);
        const y = runtime.tensor(labels);
        const loss = autocast({ dtype: "float16" }, () => crossEntropy(model.forward(x.mul(2 ** 2)), y));
        scaler.scale(loss.mul(2 ** -18)).backward();
        scaler.step(optimizer);
        scaler.update();
        optimizer.zeroGrad();
        return loss;
      });
      console.log(step, await loss.item());
      loss.dispose();
      if (++step === 500) break;
    }
    "
  `);
});
