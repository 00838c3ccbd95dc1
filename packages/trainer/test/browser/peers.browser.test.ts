import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePage, openBrowser, openPage, servePages } from "@halfstep/browser";
import { afterAll, expect, test } from "vitest";

// One device is shared with other libraries, and buffers go from one to the other without copies.

const folder = join(import.meta.dirname, "peers");
execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"], {
  cwd: folder,
});
const runtimeFiles = [
  "ort-wasm-simd-threaded.asyncify.mjs",
  "ort-wasm-simd-threaded.asyncify.wasm",
];
const files = Object.fromEntries(
  runtimeFiles.map((name) => [
    `/ort/${name}`,
    readFileSync(join(folder, "node_modules/onnxruntime-web/dist", name)),
  ]),
);
const html =
  '<!doctype html><title>peers</title><link rel="icon" href="data:,"><script type="module" src="page.js"></script>';
const served = await servePages({
  files: { ...(await bundlePage([join(folder, "page.js")])), ...files, "/index.html": html },
});
const { browser, close } = await openBrowser();
afterAll(async () => {
  await close();
  await served.close();
});

test.each([
  ["typegpu", { values: [10, 20, 30], isShared: true }],
  ["tfjs", { values: [30, 50, 70] }],
  ["onnxruntime", { values: [44, 48, 52] }],
  ["three", { values: [3.5, 6.5, 9.5, 12.5] }],
])("with %s", async (name, expected) => {
  const { page, messages } = await openPage(browser, served.url);
  const found = await page.evaluate(`shares.${name}()`).catch((error: unknown) => String(error));
  expect(found, messages.join("\n")).toEqual(expected);
  await page.close();
});
