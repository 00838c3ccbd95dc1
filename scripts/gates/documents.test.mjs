import { describe, expect, it } from "vitest";
import {
  deadLinksOf,
  documentedExports,
  exportedValues,
  headingsOf,
  isKnown,
  linksOf,
  pathsOf,
  scriptsOf,
  unmentioned,
} from "./documents.mjs";

const block = "```ts\n[a](b.md) `src/gone.ts` npm run lint\n```\n";

describe("linksOf", () => {
  it("takes links and images inside the repository, with their lines", () => {
    const text = `${block}[a](docs/a.md#top), ![b](b.png)\n[c](https://x.y/z.md) [d](#here)`;
    expect(linksOf(text)).toEqual([
      { line: 4, path: "docs/a.md", heading: "top" },
      { line: 4, path: "b.png", heading: undefined },
      { line: 5, path: "", heading: "here" },
    ]);
  });
});

describe("pathsOf", () => {
  it("takes sources and what lies below the top folders", () => {
    const text = `${block}\`kernel.ts\` \`tensor/src/plan/\` \`docs/decisions\` \`scripts/study.mjs\``;
    expect(pathsOf(text).map(({ path }) => path)).toEqual([
      "kernel.ts",
      "docs/decisions",
      "scripts/study.mjs",
    ]);
    expect(pathsOf(text)[0]?.line).toBe(4);
  });

  it("leaves out placeholders, names of others' files, results and code", () => {
    const text =
      "`apps/APP/src` `src/NAME.ts` `main_amp.py` `summary.json` `a.b` `x => x.ts` `.ts`";
    expect(pathsOf(text)).toEqual([]);
  });
});

describe("scriptsOf", () => {
  it("takes calls in text and in blocks, with their workspace", () => {
    const text = `${block}\`npm start -w images -- --help\`, \`npm test\` and \`npm run bench -w @halfstep/optim\``;
    expect(scriptsOf(text)).toEqual([
      { line: 2, script: "lint", workspace: undefined },
      { line: 4, script: "start", workspace: "images" },
      { line: 4, script: "test", workspace: undefined },
      { line: 4, script: "bench", workspace: "@halfstep/optim" },
    ]);
  });
});

describe("headingsOf", () => {
  it("spells them as links do", () => {
    expect(headingsOf("# Raw GPUBuffers\n\n## `WGSL`: what, why?\n")).toEqual([
      "raw-gpubuffers",
      "wgsl-what-why",
    ]);
  });
});

describe("deadLinksOf", () => {
  it("finds what only comments name", () => {
    const source = `import { near } from "./near.js";\n/** As {@link near}, not {@link far.away}. */\nexport const x = near;\n`;
    expect(deadLinksOf(source)).toEqual([{ line: 2, name: "far" }]);
  });
});

describe("isKnown", () => {
  it("compares whole names from the end", () => {
    const known = new Set(["packages/kernels/src/matmul.ts", "packages/kernels/src"]);
    expect(
      ["src/matmul.ts", "matmul.ts", "kernels/src"].every((path) => isKnown(path, known)),
    ).toBe(true);
    expect(isKnown("mul.ts", known)).toBe(false);
  });
});

describe("exportedValues", () => {
  it("follows export *, and leaves types out", () => {
    const sources = {
      "/p/index.ts": `export { a, type B, c as d } from "./a.js"; export type { E } from "./e.js"; export * from "./in/f.js";`,
      "/p/in/f.ts": `export const f = 1; export function g() {} export class H {} export interface I {} const j = 2;`,
    };
    expect(exportedValues("/p/index.ts", (file) => sources[file])).toEqual([
      "a",
      "d",
      "f",
      "g",
      "H",
    ]);
  });
});

describe("documentedExports", () => {
  it("looks where names are declared, types included", () => {
    const sources = {
      "/p/index.ts": `export { a, type B as C } from "./a.js"; export * from "./d.js"; export * as e from "./d.js"; export { far } from "far";`,
      "/p/a.ts": `/** A. */ export const a = 1; export interface B {}`,
      "/p/d.ts": `/** @internal */ export function d() {}\n/** F. */ class F {} export { F };`,
    };
    expect([...documentedExports("/p/index.ts", (file) => sources[file])]).toEqual([
      ["a", true],
      ["C", false],
      ["d", false],
      ["F", true],
      ["e.d", false],
      ["e.F", true],
    ]);
  });
});

describe("unmentioned", () => {
  it("asks for whole words", () => {
    expect(unmentioned(["add", "sub"], "`addScalar(x)`, `sub`")).toEqual(["add"]);
  });
});
