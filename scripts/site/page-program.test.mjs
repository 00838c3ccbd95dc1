import { describe, expect, it } from "vitest";
import { moduleOf, outputsOf, pagePrograms } from "./page-program.mjs";

const block = (code, output) =>
  `\`\`\`ts\n${code}\n\`\`\`\n${output === undefined ? "" : `\n\`\`\`text\n${output}\n\`\`\`\n`}`;

describe("pagePrograms", () => {
  it("joins blocks until a mark, each with the output directly below it", () => {
    const page = `# A\n\n${block("a;", "1\n2")}\ntext\n\n${block("b;")}\ntext\n\n${block("")}\n\`\`\`text\nx\n\`\`\`\n<!-- example -->\n${block("c;")}`;
    expect(pagePrograms(page)).toEqual([
      [
        { code: "a;\n", output: "1\n2" },
        { code: "b;\n", output: "" },
        { code: "\n", output: "x" },
      ],
      [{ code: "c;\n", output: "" }],
    ]);
  });

  it("leaves blocks of other languages alone", () => {
    expect(pagePrograms("```sh\nnpm test\n```\n```python\nx = 1\n```\n")).toEqual([]);
  });
});

describe("moduleOf and outputsOf", () => {
  it("tell the outputs of blocks apart", () => {
    const lines = [];
    const run = new Function("console", moduleOf([{ code: "console.log(1);\n" }, { code: "" }]));
    run({ log: (line) => lines.push(`${line}\n`) });
    expect(outputsOf(lines.join(""))).toEqual(["1", ""]);
  });

  it("have no output of a block that did not end", () => {
    expect(outputsOf("1\n\u001e\n2\n")).toEqual(["1"]);
  });
});
