import { expect, it } from "vitest";
import { writersIn } from "./writers.mjs";

it("finds calls that write files where they stand", () => {
  for (const line of [
    "await writeFile(path, bytes);",
    "writeFileSync(path, text)",
    "createWriteStream(path)",
    "fs.appendFile(path, text)",
    "await sharp(pixels).toFile(path);",
    'openSync(path, "w")',
    'await open(path, "a+")',
    "openSync(path, constants.O_WRONLY | constants.O_CREAT)",
    "await writeSafetensorsFile(path, tensors);",
  ])
    expect([line, writersIn(`\n${line}`)]).toEqual([line, [2]]);
});

it("leaves readers and the one writer alone", () => {
  for (const line of [
    "await writeWholeFile(path, text);",
    'openSync(path, "r")',
    "// writeFileSync(path) was here",
    'import { writeFile } from "node:fs/promises";',
    "export async function writeSafetensorsFile(",
  ])
    expect([line, writersIn(line)]).toEqual([line, []]);
});
