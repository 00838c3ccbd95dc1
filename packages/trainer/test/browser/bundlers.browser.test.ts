import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser, openPage, servePages } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";

// The packed packages, installed in an empty project, are bundled by four tools and train in a page. They must be built before.

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

// The command line of webpack needs a newer Node than it does itself.
const webpack = `import { resolve } from "node:path";
import webpack from "webpack";
const output = { path: resolve("out/webpack"), filename: "main.js" };
webpack({ mode: "production", entry: "./main.js", output }, (error, stats) => {
  if (error ?? stats.hasErrors()) throw error ?? new Error(stats.toString());
});
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
const html = '<!doctype html><title>bundled</title><link rel="icon" href="data:,">';
writeFileSync(
  join(project, "index.html"),
  `${html}<script type="module" src="./main.js"></script>`,
);
run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline"]);

const { browser, close } = await openBrowser();
afterAll(close);

test.each([
  [
    "esbuild",
    "npx",
    ["esbuild", "main.js", "--bundle", "--minify", "--format=esm", "--outdir=out/esbuild"],
  ],
  ["rollup", "npx", ["rollup", "main.js", "-p", "node-resolve", "-f", "es", "-d", "out/rollup"]],
  ["vite", "npx", ["vite", "build", "--outDir", "out/vite", "--base", "./"]],
  ["webpack", "node", ["webpack.mjs"]],
])("%s", async (tool, command, args) => {
  const folder = join(project, "out", tool);
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
});
