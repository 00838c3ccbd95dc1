// `npm run hostile`: reads all hostile files that tests make, and prints how many were refused by a line that begins with the file.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleApp } from "./start/bundle.mjs";

/** Fewer would mean that a class is missing. */
const least = 300;

const fromRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const program = fromRoot("node_modules/.cache/halfstep/hostile-corpora.js");
await bundleApp(fromRoot("scripts/hostile/corpora.mjs"), program);
const { corpora } = await import(pathToFileURL(program).href);

const directory = mkdtempSync(join(tmpdir(), "halfstep-hostile-"));
const path = join(directory, "hostile");
let count = 0;
const problems = [];
for (const [kind, { files, read }] of Object.entries(corpora)) {
  for (const { name, bytes } of files) {
    writeFileSync(path, bytes);
    const said = await refusalOf(() => read(path, bytes));
    if (!said.startsWith(`${path}: `) || said.includes("\n"))
      problems.push(`${kind}, ${name}: ${said}`);
  }
  console.log(`${String(files.length).padStart(5)} ${kind}`);
  count += files.length;
}
rmSync(directory, { recursive: true });
for (const problem of problems) console.log(problem);
console.log(
  `hostile corpus: ${count} files, ${problems.length === 0 ? "all" : count - problems.length} refused`,
);
process.exitCode = count >= least && problems.length === 0 ? 0 : 1;

async function refusalOf(read) {
  try {
    await read();
    return "was read";
  } catch ({ message }) {
    return message;
  }
}
