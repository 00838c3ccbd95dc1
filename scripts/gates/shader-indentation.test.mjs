// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are sources of modules.
import { expect, it } from "vitest";
import { withoutIndentation } from "../../tooling/tsup/shader-indentation.js";

it.each([
  [
    "const a = `fn f() {\n  var x = 1;\n    x += 2;\n}\n`;",
    "const a = `fn f() {\nvar x = 1;\nx += 2;\n}\n`;",
  ],
  ["const a = `  if (b) {\\n    ${c};\\n  }\\n`;", "const a = `  if (b) {\\n${c};\\n}\\n`;"],
  [
    "const a = `{\n  ${b.map((c) => `  let d = ${c};\n  e();\n`)}  f();\n}`;",
    "const a = `{\n${b.map((c) => `  let d = ${c};\ne();\n`)}  f();\n}`;",
  ],
])("of shaders goes: %s", (source, flat) => {
  expect(withoutIndentation(source)).toBe(flat);
});

it.each([
  "const a = `usage:\n  run a program\n`;",
  "const a = `${b}\n  ${c}\n`;",
  'const a = "f();\\n  g();";',
  "function f() {\n  g();\n}",
])("of other texts and of code stays: %s", (source) => {
  expect(withoutIndentation(source)).toBe(source);
});
