import { describe, expect, it } from "vitest";
import { closure } from "./packages.mjs";
import { importedPackages, readmeExamples } from "./readme-example.mjs";

describe("readmeExamples", () => {
  const block = "```ts\nconst a = 1;\nconsole.log(a);\n```\n";
  const code = "const a = 1;\nconsole.log(a);\n";

  it("takes the marked blocks and the output below each", () => {
    const marked = `<!-- example -->\n${block}\n\`\`\`text\n1\n\`\`\`\n`;
    const readme = `# x\n\n${block}\n${marked}\n${block}\n<!-- example -->\n${block}`;
    expect(readmeExamples(readme)).toEqual([
      { code, output: "1\n" },
      { code, output: undefined },
    ]);
  });

  it("has no output where other text comes first, and nothing where no block is marked", () => {
    const later = `<!-- example -->\n${block}\nand\n\n\`\`\`text\n1\n\`\`\`\n`;
    expect(readmeExamples(later)).toEqual([{ code, output: undefined }]);
    expect(readmeExamples(block)).toEqual([]);
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
