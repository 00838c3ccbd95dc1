import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePage, openBrowser, openPage, servePages } from "@halfstep/browser";

const folder = join(import.meta.dirname, "peers");
const runtimeFiles = [
  "ort-wasm-simd-threaded.asyncify.mjs",
  "ort-wasm-simd-threaded.asyncify.wasm",
];
const html =
  '<!doctype html><title>peers</title><link rel="icon" href="data:,"><script type="module" src="page.js"></script>';

/** A browser with the page of `peers`. */
export interface Peers {
  /** What an expression gives in a new page, or its error as text; and what the console said. */
  evaluate(
    expression: string,
  ): Promise<{ readonly found: unknown; readonly messages: readonly string[] }>;
  close(): Promise<void>;
}

/** Installs the libraries of `peers`, and serves their page to a browser. */
export async function openPeers(): Promise<Peers> {
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"], {
    cwd: folder,
  });
  const files = Object.fromEntries(
    runtimeFiles.map((name) => [
      `/ort/${name}`,
      readFileSync(join(folder, "node_modules/onnxruntime-web/dist", name)),
    ]),
  );
  const served = await servePages({
    files: { ...(await bundlePage([join(folder, "page.js")])), ...files, "/index.html": html },
  });
  const { browser, close } = await openBrowser();
  return {
    async evaluate(expression) {
      const { page, messages } = await openPage(browser, served.url);
      const found = await page.evaluate(expression).catch((error: unknown) => String(error));
      await page.close();
      return { found, messages };
    },
    async close() {
      await close();
      await served.close();
    },
  };
}
