/// <reference types="node" />
import { readFile } from "node:fs/promises";
import { expect, test, vi } from "vitest";

test("the README's example prints what it says", async () => {
  const [readme, example] = await Promise.all(
    ["../README.md", "readme-example.ts"].map((name) =>
      readFile(new URL(name, import.meta.url), "utf8"),
    ),
  );
  expect(readme).toContain(`<!-- example -->\n\`\`\`ts\n${example}\`\`\``);
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  await import("./readme-example.js");
  const printed = log.mock.calls.map(([line]) => `// ${line}`);
  log.mockRestore();
  expect(printed.length).toBe(6);
  expect(example?.trimEnd().split("\n").slice(-6)).toEqual(printed);
});
