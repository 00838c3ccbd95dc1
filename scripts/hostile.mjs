// `npm run hostile`: reads hostile files of every class, and prints how many were refused, in bounded time and memory, by a documented error
// of one line that begins with the file and says what to do.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleApp } from "./start/bundle.mjs";

/** Fewer would mean that a class is missing. */
const least = 2000;

/** Milliseconds, and bytes beyond those before, that the refusal of a file may take. */
const most = { milliseconds: 2000, bytes: 2 ** 28 };

/** The documented errors of readers. */
const typed = new Set([
  ...["SafetensorsError", "TorchFileError", "OnnxError", "CheckpointError"],
  ...["DataError", "ConfigError"],
]);

/** What to do, by a verb or a flag, or what the file should have been. */
const verbs =
  "add|choose|copy|convert|decompress|delete|download|export|get|give|go on|load|look|lower|name|open|put|raise|remove|replace|restore|save|scale|split|train|unpack|update|use|write";
const hasRemedy = new RegExp(
  `[:;,.(] ?(and |or |then |to )?(${verbs})\\b|\\bmust be\\b|\\bis put in\\b|--[a-z]+`,
  "i",
);

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
    const { error, said } = await refusalOf(() => corpus.read(path, bytes));
    const milliseconds = performance.now() - before.time;
    const took = peakBytes() - before.bytes;
    if (![`${path}: `, `${path} `].some((start) => said.startsWith(start)) || said.includes("\n"))
      problems.push(`${kind}, ${name}: ${said}`);
    else if (!typed.has(error?.name))
      problems.push(`${kind}, ${name}: ${error?.name} is no documented error: ${said}`);
    else if (!hasRemedy.test(said)) problems.push(`${kind}, ${name}: no remedy: ${said}`);
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
    return { said: "was read" };
  } catch (error) {
    return { error, said: String(error?.message) };
  }
}
