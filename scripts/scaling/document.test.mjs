import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { scalingDocument } from "./document.mjs";

const read = (name) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");

test("docs/scaling.md says what docs/scaling.json has", () => {
  expect(read("scaling.md")).toBe(scalingDocument(JSON.parse(read("scaling.json"))));
});
