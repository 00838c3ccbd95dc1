import { expect, it } from "vitest";
import { markPure } from "../../tooling/tsup/pure-initializers.js";

it.each([
  ["const a = f(1);", "const a = /* @__PURE__ */ f(1);"],
  [
    "export const a: T<A> = g<A>(h(x), () => k());",
    "export const a: T<A> = /* @__PURE__ */ g<A>(/* @__PURE__ */ h(x), () => k());",
  ],
  [
    "const a = { b: new B() }, c = [d()];",
    "const a = { b: /* @__PURE__ */ new B() }, c = [/* @__PURE__ */ d()];",
  ],
  ["const a = f(1)(2);", "const a = /* @__PURE__ */ f(1)(2);"],
  ["function f() { const a = g(); }", "function f() { const a = g(); }"],
  ["start();", "start();"],
])("marks what initialises constants of a module: %s", (source, marked) => {
  expect(markPure(source)).toBe(marked);
});
