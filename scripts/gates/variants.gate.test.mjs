// Bundles a program under each condition of the packages, looks for what must be gone, and runs it.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { beforeAll, expect, test } from "vitest";
import { transformedModules, variants } from "../../tooling/tsup/index.js";
import { nodeFlags } from "../../tooling/vitest/node-flags.js";
import { gpuEnvironment } from "../bootstrap/adapter.mjs";

const packages = join(import.meta.dirname, "../../packages");

/** Texts that only bundles with these parts hold: the first bytes of WebAssembly in `formats`, and a label of `device`. */
const partsOfCpu = {
  WebAssembly: "0061736d",
  "programs compiled by software drivers": "empty dispatches",
};

/** Bundles the program from source as with these conditions, and runs it. */
async function results(...conditions) {
  const outfile = join(packages, `trainer/node_modules/.cache/variants-${conditions.join("-")}.js`);
  const { metafile } = await build({
    entryPoints: [join(packages, "trainer/test/variants-process.ts")],
    outfile,
    metafile: true,
    bundle: true,
    minify: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["@halfstep/source"],
    external: ["webgpu"],
    plugins: readdirSync(packages).map((name) => {
      const condition = conditions.find((each) => variants[name]?.[each]);
      return transformedModules(join(packages, name), variants[name]?.[condition]);
    }),
  });
  const [{ inputs }] = Object.values(metafile.outputs);
  const modules = Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0);
  const printed = execFileSync(process.execPath, [...nodeFlags, outfile], {
    encoding: "utf8",
    env: { ...process.env, ...gpuEnvironment() },
  });
  const text = readFileSync(outfile, "utf8");
  const forCpu = Object.keys(partsOfCpu).filter((part) => text.includes(partsOfCpu[part]));
  const hasHostOps = !text.includes('"host ops"');
  return { modules, forCpu, hasHostOps, ...JSON.parse(printed) };
}

const ofJavaScript =
  /kernels\/src\/(conv2d\/(reference|strip-patch|line-patch)|formula\/strips)\.ts$/;
const ofTraining = /kernels\/src\/(conv2d\/weight-gradient|batch-norm\/(backward|statistics))\.ts$/;
const noJavaScript =
  'this bundle leaves out the JavaScript of kernels, which runs on the CPU: remove "@halfstep/gpu-only" from the conditions of the bundler';
const noGradients =
  'this bundle leaves out the gradients of ops: remove "@halfstep/inference-only" from the conditions of the bundler';
const noTraining =
  'this bundle leaves out batch norm in training mode: call eval() of the model, or remove "@halfstep/inference-only" from the conditions of the bundler';

const near = (numbers) => numbers.map((number) => expect.closeTo(number, 2));
let whole;
beforeAll(async () => {
  whole = await results();
});

test("a bundle without conditions has and does everything", () => {
  expect(whole.modules.filter((path) => ofJavaScript.test(path))).toHaveLength(4);
  expect(whole.modules.filter((path) => ofTraining.test(path))).toHaveLength(3);
  expect(whole.forCpu).toEqual(Object.keys(partsOfCpu));
  expect(whole.hasHostOps).toBe(true);
  expect(whole.inferred).toHaveLength(30);
  expect(whole.onCpu).toEqual(near(whole.inferred));
  for (const losses of [whole.trained, whole.fineTuned]) expect(losses[4]).toBeLessThan(losses[0]);
});

test("gpu-only: infers and trains on a GPU, and says what it cannot", async () => {
  const { modules, forCpu, ...found } = await results("gpu-only");
  const { inferred, trained, fineTuned, onCpu } = found;
  expect(modules.filter((path) => ofJavaScript.test(path))).toEqual([]);
  expect(forCpu).toEqual([]);
  // On software adapters tiles add up in another order than patches.
  expect(inferred).toEqual(near(whole.inferred));
  expect(trained[0]).toBeCloseTo(whole.trained[0], 2);
  for (const losses of [trained, fineTuned]) expect(losses[4]).toBeLessThan(losses[0]);
  expect(onCpu).toBe(noJavaScript);
});

test("inference-only: infers everywhere with the same bits, and says what it cannot", async () => {
  const { modules, ...found } = await results("inference-only");
  expect(modules.filter((path) => ofTraining.test(path))).toEqual([]);
  const { inferred, onCpu, forCpu } = whole;
  const failed = { trained: noTraining, fineTuned: noGradients };
  expect(found).toEqual({ forCpu, hasHostOps: false, inferred, onCpu, ...failed });
});

test("both conditions go together", async () => {
  const { modules, ...found } = await results("gpu-only", "inference-only");
  const isLeftOut = (path) => ofJavaScript.test(path) || ofTraining.test(path);
  expect(modules.filter(isLeftOut)).toEqual([]);
  const inferred = near(whole.inferred);
  expect(found).toEqual({
    forCpu: [],
    hasHostOps: false,
    inferred,
    onCpu: noJavaScript,
    trained: noTraining,
    fineTuned: noGradients,
  });
});
