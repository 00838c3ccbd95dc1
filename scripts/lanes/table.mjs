// The lanes of `npm run lanes` and `npm run test:browser`: a driver, variables, and the tests of each package that run there.
import {
  bothMpis,
  chromiumOnLavapipe,
  chromiumOnSwiftShader,
  denoOnWgpu,
  firefoxOnLavapipe,
  newerMesa,
  ownAdapter,
  swiftShader,
} from "./drivers.mjs";

/** All tests of kernels and tensors that use a GPU. */
const gpuTests = { "packages/kernels": { suites: true }, "packages/tensor": { suites: true } };

/** Both drivers flush float32 subnormals to zero, as GPUs may. */
const flushed = {
  test: "keep 8-bit moments bit for bit as the CPU does",
  why: "the driver flushes subnormals, which are among its gradients",
};

/** Tests of programs that no adapter of this machine has. */
const otherGpus = [
  "compile",
  "are multiplied as float16 by hardware matrices",
  "pin the size of subgroups where it varies",
  "pipelines of kernels and of strangers of their names",
].map((test) => ({ test, why: "wgpu has no subgroups, and no device that only compiles" }));

/** Programs of the packed tier without subgroups are those that `npm test` runs. */
const bestTier = { HALFSTEP_TEST_TIERS: "best" };

/**
 * @typedef Lane
 * @property {string} name
 * @property {string} what a line for people
 * @property {import("./drivers.mjs").Driver} driver
 * @property {Record<string, string>} env
 * @property {Record<string, { suites?: boolean, files?: string[], lane?: string[], browser?: string[] }>} tests by folder. `suites`: all test
 * files that use a GPU. `files`: some of them. `lane`, `browser`: files written for those, by name
 * @property {{ test: string, why: string }[]} differing tests by a part of their names that fail there, and why they may
 * @property {true} [onRequest] runs only where it is named
 */

/** @type {Lane[]} */
export const lanes = [
  {
    name: "long",
    what: "whole runs of apps, gradients accumulated by each kernel and model, and the costs of every plan",
    driver: ownAdapter,
    env: {},
    tests: {
      "packages/distributed": { lane: ["convergence", "random-runs"] },
      "packages/kernels": { lane: ["accumulating"] },
      "packages/models": { lane: ["gpu-steps"] },
      "packages/trainer": { lane: ["micro-batches", "plan-counts"] },
      "apps/digits": { lane: ["underflow", "cost", "runs"] },
      "apps/images": { lane: ["train", "labels"] },
      "apps/language-model": { lane: ["lstm", "union"] },
      "apps/segmentation": { lane: ["killed", "train"] },
      "apps/super-resolution": { lane: ["train"] },
      "apps/text": { lane: ["training", "published"] },
    },
    differing: [],
  },
  {
    name: "studies",
    what: "what compressed gradients cost in loss",
    driver: ownAdapter,
    env: {},
    tests: { "packages/distributed": { lane: ["compression"] } },
    differing: [],
    onRequest: true,
  },
  {
    name: "engines",
    what: "engines that an adapter does not choose for itself",
    driver: ownAdapter,
    env: {},
    tests: {
      "packages/kernels": { lane: ["attention-blocks", "convolution-engines", "matmul-engines"] },
    },
    differing: [],
  },
  {
    name: "matrices",
    what: "programs for GPUs, with hardware matrices",
    driver: newerMesa,
    env: { HALFSTEP_TEST_HARDWARE_CLASS: "a GPU" },
    tests: {
      ...gpuTests,
      "packages/kernels": {
        ...gpuTests["packages/kernels"],
        lane: ["attention", "convolutions", "matrices", "matrix-blocks", "norm-rows", "rows"],
      },
      "packages/trainer": { files: ["test/gaps.test.ts"], lane: ["training", "programs"] },
    },
    differing: [flushed],
  },
  {
    name: "four-lanes",
    what: "training on subgroups of four",
    driver: newerMesa,
    env: { LP_NATIVE_VECTOR_WIDTH: "128", ...bestTier },
    tests: { "packages/trainer": { lane: ["training"] } },
    differing: [],
  },
  {
    name: "eight-lanes",
    what: "kernels on subgroups of eight",
    driver: newerMesa,
    env: { LP_NATIVE_VECTOR_WIDTH: "256", ...bestTier },
    tests: { "packages/kernels": { suites: true } },
    differing: [flushed],
  },
  {
    name: "swiftshader",
    what: "packed with subgroups",
    driver: swiftShader,
    env: bestTier,
    tests: {
      "packages/kernels": { suites: true },
      "packages/tensor": { files: ["test/gradients.test.ts"] },
      "packages/trainer": { lane: ["training", "compile-cost"] },
    },
    differing: [flushed],
  },
  {
    name: "wgpu",
    what: "kernels and every op in Deno, whose WebGPU is wgpu, with the programs for GPUs",
    driver: denoOnWgpu,
    // Deno answers reads after ten milliseconds: a worker seldom computes.
    env: { ...bestTier, HALFSTEP_TEST_HARDWARE_CLASS: "a GPU", VITEST_MAX_WORKERS: "3" },
    tests: {
      "packages/kernels": { suites: true },
      // All suites would take ten minutes.
      "packages/tensor": { files: ["src/testing.test.ts", "test/special-values.test.ts"] },
    },
    differing: [flushed, ...otherGpus],
  },
  {
    name: "two-ranks",
    what: "processes that exchange over MPI",
    driver: bothMpis,
    env: {},
    tests: {
      "packages/distributed": { lane: ["mpi"] },
      "packages/trainer": { lane: ["ranks"] },
      "apps/images": { lane: ["two-ranks"] },
    },
    differing: [],
  },
];

/** @type {Lane[]} */
export const browserLanes = [
  {
    name: "swiftshader",
    what: "Chromium, packed with subgroups",
    driver: chromiumOnSwiftShader,
    env: { HALFSTEP_BROWSER_LANE: "swiftshader" },
    tests: {
      "packages/trainer": { browser: ["bits", "onnx-web", "peers", "resume", "steady"] },
      "apps/playground": { browser: ["devices", "interrupted", "pages"] },
    },
    differing: [],
  },
  {
    name: "lavapipe",
    what: "Chromium, native",
    driver: chromiumOnLavapipe,
    env: { HALFSTEP_BROWSER_LANE: "lavapipe" },
    tests: {
      "packages/trainer": { browser: ["bits"] },
      "apps/playground": { browser: ["devices"] },
    },
    differing: [],
  },
  {
    name: "firefox",
    what: "Firefox, whose WebGPU is wgpu",
    driver: firefoxOnLavapipe,
    env: { HALFSTEP_BROWSER_LANE: "firefox" },
    tests: { "packages/trainer": { browser: ["bits"] } },
    differing: [],
  },
];

/** With what takes long, and needs built packages. @type {Lane[]} */
export const fullBrowserLanes = [
  ...browserLanes,
  {
    name: "recipes",
    what: "the playground's presets, and every precision of its digits and its GPT",
    driver: chromiumOnLavapipe,
    env: { HALFSTEP_BROWSER_LANE: "lavapipe" },
    tests: { "apps/playground": { browser: ["recipes"] } },
    differing: [],
  },
  {
    name: "bundlers",
    what: "packed packages in an empty project, bundled by four tools",
    driver: chromiumOnSwiftShader,
    env: { HALFSTEP_BROWSER_LANE: "swiftshader" },
    tests: { "packages/trainer": { browser: ["bundlers"] } },
    differing: [],
  },
];

/** For half an hour, or HALFSTEP_LEAK_MINUTES. @type {Lane[]} */
export const leakLanes = [
  {
    name: "leaks",
    what: "memory of a page that trains for long",
    driver: chromiumOnSwiftShader,
    env: { HALFSTEP_BROWSER_LANE: "swiftshader" },
    tests: {
      "packages/trainer": { browser: ["leaks"] },
      "apps/playground": { browser: ["leaks"] },
    },
    differing: [],
  },
];
