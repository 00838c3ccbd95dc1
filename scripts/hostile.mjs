// `npm run hostile`: reads hostile files of every class, and prints how many were refused, in bounded time and memory, by a line that begins
// with the file.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleApp } from "./start/bundle.mjs";

/** Fewer would mean that a class is missing. */
const least = 1500;

/** Milliseconds, and bytes beyond those before, that the refusal of a file may take. */
const most = { milliseconds: 2000, bytes: 2 ** 28 };

const fromRoot = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const program = fromRoot("node_modules/.cache/halfstep/hostile-corpora.js");
await bundleApp(fromRoot("scripts/hostile/corpora.mjs"), program);
const { corpora } = await import(pathToFileURL(program).href);

const directory = mkdtempSync(join(tmpdir(), "halfstep-hostile-"));
let count = 0;
const problems = [];
for (const [i, [kind, corpus]] of Object.entries(corpora).entries()) {
  const folder = join(directory, `${i}`);
  mkdirSync(folder);
  const path = join(folder, corpus.file ?? "hostile");
  await corpus.make?.(folder);
  const files = corpus.make ? corpus.files(readFileSync(path)) : corpus.files;
  for (const { name, bytes } of files) {
    writeFileSync(path, bytes);
    const before = { time: performance.now(), bytes: peakBytes() };
    const said = await refusalOf(() => corpus.read(path, bytes));
    const milliseconds = performance.now() - before.time;
    const took = peakBytes() - before.bytes;
    if (![`${path}: `, `${path} `].some((start) => said.startsWith(start)) || said.includes("\n"))
      problems.push(`${kind}, ${name}: ${said}`);
    else if (milliseconds > most.milliseconds || took > most.bytes)
      problems.push(`${kind}, ${name}: took ${Math.round(milliseconds)} ms and ${took} bytes`);
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

/** The most memory that this process has had. */
function peakBytes() {
  return 1024 * process.resourceUsage().maxRSS;
}

async function refusalOf(read) {
  try {
    await read();
    return "was read";
  } catch ({ message }) {
    return message;
  }
}
