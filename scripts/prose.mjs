// Checks the prose of documents and comments: sentences have at most 40 words, no word is repeated, and pronouns for people do
// not refer to programs. It prints one line for each finding. `npm run prose -- --figures` prints the length of sentences by
// package instead.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { commentsOf } from "./gates/comments.mjs";
import { proseOf } from "./gates/prose.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => /\.(md|ts|mjs|js)$/.test(file) && existsSync(join(root, file)));

const isChinese = (file) => /(^|\/)zh(\/|\.)|\.zh(-CN)?\.md$/.test(file);

const figures = new Map();
let findings = 0;
for (const file of files) {
  if (isChinese(file)) continue;
  const source = readFileSync(join(root, file), "utf8");
  const texts = file.endsWith(".md") ? [{ line: 0, text: source }] : commentsOf(file, source);
  const place = /^(packages|apps)\/[^/]+/.exec(file)?.[0] ?? file.split("/")[0];
  const key = `${place} ${file.endsWith(".md") ? "documents" : "comments"}`;
  for (const { line, text } of texts) {
    const prose = await proseOf(text);
    figures.set(key, [...(figures.get(key) ?? []), ...prose.sentences]);
    for (const { line: within, reason } of prose.findings) {
      findings++;
      if (!process.argv.includes("--figures")) console.log(`${file}:${line + within}: ${reason}`);
    }
  }
}
if (process.argv.includes("--figures")) {
  for (const [key, lengths] of [...figures].sort()) {
    const words = lengths.reduce((a, b) => a + b, 0);
    const long = lengths.filter((length) => length > 25).length;
    console.log(
      `${key}: ${lengths.length} sentences of ${(words / lengths.length).toFixed(1)} words, ${((100 * long) / lengths.length).toFixed(0)} % of more than 25`,
    );
  }
}
console.log(`${files.length} files, ${findings} findings`);
process.exitCode = findings > 0 && !process.argv.includes("--figures") ? 1 : 0;
