import { readFileSync } from "node:fs";
import * as dtypes from "@halfstep/formats/dtypes";
import { expect, test } from "vitest";
import * as functional from "../src/functional.js";
import * as tensor from "../src/index.js";

// The page of torch's methods names only what there is.

const page = readFileSync(
  new URL("../../../docs/guide/tensor-methods.md", import.meta.url),
  "utf8",
);
const section = (title: string): string => page.split(`## ${title}`)[1]?.split("\n## ")[0] ?? "";
const found = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, name = ""]) => name);
const camelCase = (name: string): string =>
  name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const isFunction = (module: object, name: string): boolean =>
  typeof (module as Record<string, unknown>)[name] === "function";

const runtime = tensor.cpuRuntime();
const x = runtime.variable([1, 2], [2], { requiresGrad: true });

test("the same methods are methods", () => {
  const list = section("The same methods").split("\n\n")[2] ?? "";
  const names = found(list, /`(\w+)`/g);
  expect(names.length).toBeGreaterThan(70);
  expect(names.filter((name) => !(camelCase(name) in x))).toEqual([]);
});

test("functions are exported by the entry that the page names", () => {
  const own = found(section("Functions of `@halfstep/tensor`"), /`(\w+)\(/g);
  expect(own.filter((name) => !isFunction(tensor, name))).toEqual([]);
  const further = found(section("Functions of `@halfstep/tensor/functional`"), /(\w+)\([a-z]/g);
  expect(further.filter((name) => !isFunction(functional, name) && !(name in x))).toEqual([]);
});

test("what stands for another name is there", () => {
  const rows = section("Under another name, or in one line");
  const called = new Set(found(rows, /(?<![.\w`])`?([a-z]\w+)\(/gi));
  // A hook is a matter of nn.
  const others = [...called].filter(
    (name) => !isFunction(functional, name) && !isFunction(dtypes, name),
  );
  expect(others).toEqual(["hookGradient"]);
  const methods = new Set(found(rows, /[\w)]\.([a-z]\w*)\(/gi));
  expect([...methods].filter((name) => !(name in x) && !(name in runtime))).toEqual([]);
});
