import { describe, expect, it } from "vitest";
import { moduleOf, outputsOf, pagePrograms } from "./page-program.mjs";

const block = (code, output) =>
  `\`\`\`ts\n${code}\n\`\`\`\n${output === undefined ? "" : `\n\`\`\`text\n${output}\n\`\`\`\n`}`;

describe("pagePrograms", () => {
  it("joins blocks until a mark, each with the output directly below it", () => {
    const page = `# A\n\n${block("a;", "1\n2")}\ntext\n\n${block("b;")}\ntext\n\n${block("")}\n\`\`\`text\nx\n\`\`\`\n<!-- example -->\n${block("c;")}`;
    expect(pagePrograms(page)).toMatchObject([
      {
        blocks: [
          { code: "a;\n", output: "1\n2" },
          { code: "b;\n", output: "" },
          { code: "\n", output: "x" },
        ],
      },
      { mark: "example", blocks: [{ code: "c;\n", output: "" }] },
    ]);
  });

  it("begins programs with what is given, and nothing else", () => {
    const page = `<!-- given\nlet a = 1;\n-->\n${block("a;")}\n<!-- given\n-->\n${block("b;")}\n<!-- note -->\n\ntext\n${block("c;")}`;
    expect(pagePrograms(page).map(({ given, blocks }) => [given, blocks.length])).toEqual([
      ["let a = 1;\n", 1],
      ["", 2],
    ]);
  });

  it("leaves blocks of other languages alone", () => {
    expect(pagePrograms("```sh\nnpm test\n```\n```python\nx = 1\n```\n")).toEqual([]);
  });
});

describe("moduleOf and outputsOf", () => {
  it("tell the outputs of blocks apart, and leave out that of what is given", () => {
    const lines = [];
    const blocks = [{ code: "console.log(1);\n" }, { code: "" }];
    const run = new Function("console", moduleOf({ given: "console.log(0);\n", blocks }));
    run({ log: (line) => lines.push(`${line}\n`) });
    expect(outputsOf(lines.join(""))).toEqual(["1", ""]);
  });

  it("have no output of a block that did not end", () => {
    expect(outputsOf("\u001e\n1\n\u001e\n2\n")).toEqual(["1"]);
  });
});
