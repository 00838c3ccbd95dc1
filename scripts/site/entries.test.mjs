import { expect, it } from "vitest";
import { packageEntries } from "./entries.mjs";

it("takes every entry that has a source", () => {
  const exports = {
    ".": { "@halfstep/source": "./src/index.ts", default: "./dist/index.js" },
    "./node": { "@halfstep/source": "./src/node.ts", default: "./dist/node.js" },
    "./package.json": "./package.json",
  };
  expect(
    packageEntries([{ name: "@halfstep/data", directory: "/r/data", manifest: { exports } }]),
  ).toEqual([
    { name: "@halfstep/data", source: "/r/data/src/index.ts" },
    { name: "@halfstep/data/node", source: "/r/data/src/node.ts" },
  ]);
});
