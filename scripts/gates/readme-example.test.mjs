import { describe, expect, it } from "vitest";
import { closure } from "./packages.mjs";
import { importedPackages, readmeExample } from "./readme-example.mjs";

describe("readmeExample", () => {
  const block = "```ts\nconst a = 1;\nconsole.log(a);\n```\n";

  it("takes the marked block and the output below it", () => {
    const readme = `# x\n\n${block}\n<!-- example -->\n${block}\n\`\`\`text\n1\n\`\`\`\n\n${block}`;
    expect(readmeExample(readme)).toEqual({
      code: "const a = 1;\nconsole.log(a);\n",
      output: "1\n",
    });
  });

  it("has no output where other text comes first, and nothing where no block is marked", () => {
    const later = `<!-- example -->\n${block}\nand\n\n\`\`\`text\n1\n\`\`\`\n`;
    expect(readmeExample(later)?.output).toBeUndefined();
    expect(readmeExample(block)).toBeUndefined();
  });
});

describe("importedPackages", () => {
  it("names packages once, without subpaths, built-ins and own files", () => {
    const code = `
import { a } from "@halfstep/device/node";
import {
  b,
} from "@halfstep/device";
import "webgpu";
import { join } from "node:path";
import x from "./x.js";
const y = await import("other/deep");`;
    expect(importedPackages(code)).toEqual(["@halfstep/device", "webgpu", "other"]);
  });
});

describe("closure", () => {
  it("follows dependencies inside the repository only", () => {
    const pkg = (name, ...dependencies) => ({
      name,
      manifest: { dependencies: Object.fromEntries(dependencies.map((key) => [key, "1"])) },
    });
    const all = [pkg("a", "b", "vega"), pkg("b", "c"), pkg("c"), pkg("d")];
    expect(closure(["a"], all)).toEqual(["a", "b", "c"]);
  });

  it("keeps a package whose manifest names no dependencies", () => {
    expect(closure(["a"], [{ name: "a", manifest: {} }])).toEqual(["a"]);
  });
});
