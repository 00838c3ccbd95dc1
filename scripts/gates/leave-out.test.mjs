import { expect, test } from "vitest";
import { leaveOut } from "../../tooling/tsup/leave-out.js";

const leftOut = {
  members: ["reference"],
  within: "src",
  replacement: "absent",
  from: "src/absent.ts",
};

test.each([
  ["const a = { reference(x) { f(x); }, b };", "const a = { reference: absent, b };"],
  ["g({ reference: (x) => f(x) });", "g({ reference: absent });"],
  ["g({ reference: made(1), ...b });", "g({ reference: absent, ...b });"],
  [
    'const a = { reference: b ? "none" : { reference() {} } };',
    'const a = { reference: b ? "none" : absent };',
  ],
  [
    "const a = [() => ({ b: { reference: f } })];",
    "const a = [() => ({ b: { reference: absent } })];",
  ],
])("functions that are members of object literals are replaced: %s", (source, left) => {
  expect(leaveOut(source, "src/a/b.ts", leftOut)).toBe(
    `import { absent } from "../absent.js";\n${left}`,
  );
});

test("calls whose answer is known are replaced by it", () => {
  const answers = { isCpu: "false" };
  const source = "const a = isCpu(context) ? 8 : 64;";
  expect(leaveOut(source, "src/a.ts", { ...leftOut, answers })).toBe("const a = false ? 8 : 64;");
});

test.each([
  "const a = { reference, b };",
  'const a = { reference: "none" };',
  "const { reference: a } = b;",
  "interface A { reference(x: number): void; }",
  "class A { reference() {} }",
  "a.reference = f;",
])("others stay: %s", (source) => {
  expect(leaveOut(source, "src/a.ts", leftOut)).toBe(source);
});
