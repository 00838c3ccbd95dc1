import { expect, test } from "vitest";
import { commentsOf } from "./comments.mjs";
import { longest, proseOf } from "./prose.mjs";

const reasonsOf = async (text) => (await proseOf(text)).findings.map(({ reason }) => reason);

test("a sentence has a length that one can read", async () => {
  const words = (count) =>
    `${Array.from({ length: count }, () => "word")
      .map((w, i) => `${w}${i}`)
      .join(" ")}.`;
  expect(await reasonsOf(words(longest))).toEqual([]);
  expect(await reasonsOf(words(longest + 1))).toEqual([
    `a sentence of ${longest + 1} words: at most ${longest}`,
  ]);
  // Code, tables and references are no prose.
  expect(
    await reasonsOf(`\`\`\`ts\n${words(60)}\n\`\`\`\n\n| a |\n| --- |\n| ${words(60)} |`),
  ).toEqual([]);
});

test("programs are not called who; people are", async () => {
  const riddle = '"who": name the kernel, the pass or the function';
  expect(await reasonsOf("Kernels who store gradients look for infinities.")).toEqual([riddle]);
  expect(await reasonsOf("Users who store gradients look for infinities.")).toEqual([]);
  expect(await reasonsOf("A matrix whose rows are apart.")).toEqual([]);
});

test("a repeated word is found, in its line", async () => {
  const { findings } = await proseOf("The first line.\n\nThe the second.");
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatchObject({ line: 3 });
});

test("comments are read as Markdown: lines together, tags without names, examples and directives not at all", () => {
  const source = [
    "// One sentence in",
    "// two lines.",
    "const url = `https://example.org/*`; // Behind code.",
    "/**",
    " * Adds {@link one}.",
    " *",
    " * @param x what is added",
    " * @example",
    " * add(1); // code",
    " */",
    "export const add = (x: number): number => x + 1;",
    "// biome-ignore lint: for a reason",
  ].join("\n");
  expect(commentsOf("a.ts", source).map(({ line, text }) => [line, text.trim()])).toEqual([
    [0, "One sentence in\ntwo lines."],
    [2, "Behind code."],
    [3, "Adds `one`.\n\nwhat is added"],
  ]);
});
