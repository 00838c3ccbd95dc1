// `npm run test:one -- optimizer Lion`, `npm run test:one -- format float8e3m4`: the tests that all optimizers or formats share, for one
// of them. It is meant for work on that one; `npm test` runs all tests.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { gpuEnvironment } from "./bootstrap/adapter.mjs";

const suites = {
  optimizer: {
    folder: "packages/optim",
    files: ["trajectories", "storages", "scaling", "constructors", "torch"],
  },
  format: {
    folder: "packages/formats",
    files: ["format", "arrays", "real", "properties", "golden"],
  },
};

const [kind, name, ...more] = process.argv.slice(2);
const suite = suites[kind];
if (suite === undefined || name === undefined) {
  console.error("npm run test:one -- optimizer NAME | format NAME [flags of vitest]");
  process.exit(2);
}
const { folder, files } = suite;
spawn("npx", ["vitest", "run", ...files, ...more], {
  cwd: fileURLToPath(new URL(`../${folder}`, import.meta.url)),
  stdio: "inherit",
  shell: process.platform === "win32",
  env: { ...process.env, ...gpuEnvironment(), HALFSTEP_ONLY: name },
}).on("close", (code) => {
  process.exitCode = code ?? 1;
});
