import { basename, join } from "node:path";
import { defaultClientConditions, defaultServerConditions } from "vite";
import { configDefaults, defineConfig } from "vitest/config";
import { nodeFlags } from "./node-flags.js";

// BUILT=1 tests what will be published; otherwise packages are read from source, so no build comes first.
const source = process.env.BUILT === "1" ? [] : ["@halfstep/source"];

// `npm test` sums these reports into the one total that it ends with.
const reports = process.env.HALFSTEP_TEST_REPORTS;
const report = reports && join(reports, `${basename(process.cwd())}-${process.pid}.json`);

// Tests of lanes and browsers need what this machine need not have. `npm run lanes` and `npm run test:browser` name the files that they run.
const files = process.env.HALFSTEP_LANE_TESTS?.split(",");
const laneTests = "**/*.{lane,browser}.test.ts";

// The lane `wgpu` computes with the WebGPU of Deno instead of Dawn.
const alias =
  process.env.HALFSTEP_TEST_GPU === "navigator"
    ? { webgpu: join(import.meta.dirname, "navigator-gpu.js") }
    : {};

/**
 * vitest keys the modules that it transforms by the text of the config file. Those of the workspaces differ in nothing that a transformation
 * sees: by this plugin they share modules.
 */
const sharedModules = {
  name: "halfstep:shared-modules",
  configResolved(config) {
    config.configFileDependencies.splice(0, Number.POSITIVE_INFINITY, import.meta.filename);
  },
};

/**
 * The vitest config of packages that never touch a GPU. Test files share processes, one a core: a process for each file, which loads
 * the same modules again, costs a third of the CPU time of these packages.
 */
export const unit = ({ exclude = [], ...test } = {}) =>
  defineConfig({
    // Transformed modules are kept in node_modules, and packages share them as long as they have one root.
    root: join(import.meta.dirname, "../.."),
    plugins: [sharedModules],
    resolve: { alias, conditions: [...source, ...defaultClientConditions] },
    ssr: { resolve: { conditions: [...source, ...defaultServerConditions] } },
    test: {
      dir: process.cwd(),
      pool: "forks",
      execArgv: [...nodeFlags],
      experimental: { fsModuleCache: true },
      isolate: false,
      include: files ?? ["src/**/*.test.ts", "test/**/*.test.ts"],
      exclude: [...configDefaults.exclude, ...(files ? [] : [laneTests]), ...exclude],
      benchmark: { include: ["bench/**/*.bench.ts"] },
      passWithNoTests: false,
      setupFiles: [join(import.meta.dirname, "properties.js")],
      // They end what hangs. A machine whose cores others use may be ten times slower than an idle one, and must pass.
      testTimeout: 300_000,
      hookTimeout: 300_000,
      ...(report && { reporters: ["default", "json"], outputFile: { json: report } }),
      ...test,
    },
  });

/** The vitest config of apps, whose tests train on the GPU: one worker, one device, so that runs do not fight for it. */
export const gpu = (test = {}) => unit({ maxWorkers: 1, ...test });

/** Mesa's software driver compiles without LLVM's optimizations, unless a lane sets the variable itself. */
export const withoutOptimizations = { GALLIVM_PERF: process.env.GALLIVM_PERF ?? "nopt" };

/**
 * The vitest config of packages whose tests compile many programs and run each for a moment. Mesa's software driver compiles
 * them without LLVM's optimizations: the same bits in two thirds of the CPU time (decision 89). Training for minutes would be slower.
 */
export const manyPrograms = (test = {}) => gpu({ env: withoutOptimizations, ...test });

/**
 * {@link manyPrograms} on vectors of four lanes instead of eight, which take the driver's compiler a fifth less CPU time. It is for packages
 * whose own code does not know how many lanes a subgroup has, and for those whose tests a lane runs on eight. Lanes (`npm run lanes`) set their
 * own width.
 */
export const manyNarrowPrograms = ({ env, ...test } = {}) =>
  manyPrograms({
    env: { ...withoutOptimizations, ...(files ? {} : { LP_NATIVE_VECTOR_WIDTH: "128" }), ...env },
    ...test,
  });

/**
 * Variables by which a package's tests in `npm test` take the best tier of the adapter alone. The packed tier is for lanes, and for the packages that
 * are tested on both (decision 157).
 */
export const onBestTier = files
  ? {}
  : { HALFSTEP_TEST_TIERS: process.env.HALFSTEP_TEST_TIERS ?? "best" };
