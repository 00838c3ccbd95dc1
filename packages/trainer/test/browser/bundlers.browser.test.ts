import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser, openPage, servePages } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";

// The packed packages, installed in an empty project, are bundled by four tools, each without a condition and with one, and train in a
// page. They must be built before.

const root = join(import.meta.dirname, "../../../..");
const tools = {
  "@rollup/plugin-node-resolve": "16.0.3",
  esbuild: "0.28.2",
  rollup: "4.67.4",
  vite: "8.3.8",
  webpack: "5.112.2",
};

const program = `import { requestDevice } from "@halfstep/device";
import { GradScaler } from "@halfstep/grad-scaler";
import { Mlp } from "@halfstep/models";
import { AdamW } from "@halfstep/optim";
import { ampPrimitives, crossEntropy, flatten, gpuRuntime } from "@halfstep/tensor";
import { parameterSha256, train } from "@halfstep/trainer";
import { opfsCheckpoints } from "@halfstep/trainer/browser";

globalThis.trainSome = async () => {
  const device = await requestDevice();
  const runtime = gpuRuntime(device);
  const model = new Mlp(runtime, { sizes: [2, 8, 2], seed: 1 });
  const optimizer = new AdamW(runtime.target, flatten(model.parameters()), { lr: 0.02 });
  const batch = { x: Float32Array.of(1, 0, 0, 1), y: Uint32Array.of(0, 1) };
  const { steps } = await train({
    runtime, device, optimizer, precision: "float16", epochs: 1, lr: () => 0.02,
    scaler: new GradScaler(ampPrimitives(runtime)),
    batches: () => Array(5).fill(batch),
    loss: ({ x, y }) => crossEntropy(model.forward(runtime.tensor(x, [2, 2])), runtime.tensor(y)),
    checkpoints: { store: opfsCheckpoints("bundled"), parts: { model, optimizer } },
  });
  return { steps, sha256: await parameterSha256(model.namedParameters()) };
};
`;

const condition = "@halfstep/gpu-only";

// The command line of webpack needs a newer Node than it does itself.
const webpack = `import { resolve } from "node:path";
import webpack from "webpack";
const [folder, ...conditions] = process.argv.slice(2);
const output = { path: resolve(folder), filename: "main.js" };
const resolution = { conditionNames: [...conditions, "..."] };
webpack({ mode: "production", entry: "./main.js", output, resolve: resolution }, (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString());
});
`;
const vite = `import { defaultClientConditions } from "vite";
export default { resolve: { conditions: ["${condition}", ...defaultClientConditions] } };
`;

const project = mkdtempSync(join(tmpdir(), "halfstep-bundlers-"));
afterAll(() => rmSync(project, { recursive: true }));
const run = (command: string, args: readonly string[], cwd = project): string =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

const workspaces = readdirSync(join(root, "packages")).flatMap((name) => [
  "-w",
  `packages/${name}`,
]);
const packed: { name: string; filename: string }[] = JSON.parse(
  run("npm", ["pack", "--json", "--pack-destination", project, ...workspaces], root),
);
const own = packed.map(({ name, filename }) => [name, `file:${filename}`]);
const manifest = {
  private: true,
  type: "module",
  dependencies: Object.fromEntries(own),
  devDependencies: tools,
};
writeFileSync(join(project, "package.json"), JSON.stringify(manifest));
writeFileSync(join(project, "main.js"), program);
writeFileSync(join(project, "webpack.mjs"), webpack);
writeFileSync(join(project, "gpu-only.config.mjs"), vite);
const html = '<!doctype html><title>bundled</title><link rel="icon" href="data:,">';
writeFileSync(
  join(project, "index.html"),
  `${html}<script type="module" src="./main.js"></script>`,
);
run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"]);

const { browser, close } = await openBrowser();
afterAll(close);

const esbuild = ["esbuild", "main.js", "--bundle", "--minify", "--format=esm"];
const rollup = ["rollup", "main.js", "-f", "es", "-p"];
const viteBuild = ["vite", "build", "--base", "./", "--outDir"];

/** By tool: the command, its arguments, and those instead for the condition. */
const bundlers: Record<
  string,
  readonly [string, (folder: string) => string[], (folder: string) => string[]]
> = {
  esbuild: [
    "npx",
    (folder) => [...esbuild, `--outdir=${folder}`],
    (folder) => [...esbuild, `--outdir=${folder}`, `--conditions=${condition}`],
  ],
  rollup: [
    "npx",
    (folder) => [...rollup, "node-resolve", "-d", folder],
    (folder) => [...rollup, `node-resolve={exportConditions:["${condition}"]}`, "-d", folder],
  ],
  vite: [
    "npx",
    (folder) => [...viteBuild, folder],
    (folder) => [...viteBuild, folder, "--config", "gpu-only.config.mjs"],
  ],
  webpack: [
    "node",
    (folder) => ["webpack.mjs", folder],
    (folder) => ["webpack.mjs", folder, condition],
  ],
};

/** Bundles the program, trains in a page, and returns the bytes of the bundle. */
async function bytesOf(tool: string, command: string, args: readonly string[], name: string) {
  const folder = join(project, name);
  mkdirSync(folder, { recursive: true });
  run(command, args);
  if (tool !== "vite")
    writeFileSync(
      join(folder, "index.html"),
      `${html}<script type="module" src="main.js"></script>`,
    );
  const served = await servePages({ folder, base: "/below/" });
  const { page, messages } = await openPage(browser, served.url);
  const found = await page.evaluate("trainSome()");
  expect(found).toEqual({ steps: 5, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect([messages, served.missing]).toEqual([[], []]);
  await page.close();
  await served.close();
  const scripts = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return scripts
    .filter((path) => path.endsWith(".js"))
    .reduce((sum, path) => sum + statSync(join(folder, path)).size, 0);
}

test.each(Object.keys(bundlers))("%s", async (tool) => {
  const [command, whole, gpuOnly] = bundlers[tool] as (typeof bundlers)[string];
  const [folder, smaller] = [`out/${tool}`, `out/${tool}-gpu-only`];
  const bytes = await bytesOf(tool, command, whole(folder), folder);
  const left = await bytesOf(tool, command, gpuOnly(smaller), smaller);
  expect(left).toBeLessThan(0.97 * bytes);
});
