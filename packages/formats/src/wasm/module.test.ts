import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generate } from "../../wasm/build.mjs";
import { moduleDigits, pieceLength } from "./module.js";

test("the committed bytes are those that the source gives", async () => {
  expect(readFileSync(new URL("module.ts", import.meta.url), "utf8")).toBe(await generate());
});

test("the module asks for nothing, and compiles at once everywhere", () => {
  const bytes = Buffer.from(moduleDigits, "hex");
  // Browsers used to refuse larger ones where the page would have to wait.
  expect(bytes.length).toBeLessThan(4096);
  expect(WebAssembly.Module.imports(new WebAssembly.Module(bytes))).toEqual([]);
  expect(pieceLength % 16).toBe(0);
});
