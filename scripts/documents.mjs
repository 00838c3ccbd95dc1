// Checks the names in documents: links and their headings, files and npm scripts in Markdown must exist, and links of comments
// must name declarations of their file. The README of each package must name every exported value. Every export, types included,
// must have a docstring. Prints one line for each finding.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import {
  deadLinksOf,
  documentedExports,
  exportedValues,
  headingsOf,
  isKnown,
  linksOf,
  pathsOf,
  scriptsOf,
  unmentioned,
} from "./gates/documents.mjs";
import { publicPackages } from "./gates/packages.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path) => readFileSync(path, "utf8");

const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter((file) => file !== "" && existsSync(join(root, file)));

/** Files, and all folders that they are in. */
const known = new Set(files);
for (const file of files)
  for (let folder = dirname(file); folder !== "."; folder = dirname(folder)) known.add(folder);

/** Scripts by the name of their workspace and by its folder; those of the root under "". */
const scripts = new Map();
for (const file of files.filter((each) => /^([^/]+\/[^/]+\/)?package\.json$/.test(each))) {
  const manifest = JSON.parse(read(join(root, file)));
  const names = new Set(Object.keys(manifest.scripts ?? {}));
  for (const name of file === "package.json" ? [""] : [manifest.name, dirname(file)])
    scripts.set(name, names);
}

const findings = [];
const documents = files.filter((file) => file.endsWith(".md") && !file.startsWith(".changeset/"));
for (const document of documents) {
  const text = read(join(root, document));
  const found = (line, what) => findings.push(`${document}:${line}: ${what}`);

  for (const { line, path, heading } of linksOf(text)) {
    const target = path === "" ? document : posix.normalize(posix.join(dirname(document), path));
    if (!known.has(target.replace(/\/$/, ""))) found(line, `the link to ${path} leads nowhere`);
    else if (heading && !headingsOf(read(join(root, target))).includes(heading))
      found(line, `${target} has no heading #${heading}`);
  }
  for (const { line, path } of pathsOf(text))
    if (!isKnown(path, known)) found(line, `there is no ${path}`);
  for (const { line, script, workspace = "" } of scriptsOf(text))
    if (!scripts.get(workspace)?.has(script))
      found(line, `${workspace || "the root"} has no script ${script}`);
}

for (const source of files.filter((file) => /^(packages|apps)\/.*\.ts$/.test(file)))
  for (const { line, name } of deadLinksOf(read(join(root, source))))
    findings.push(`${source}:${line}: {@link ${name}} is neither declared nor imported there`);

for (const { directory, manifest } of publicPackages(root)) {
  const readme = read(join(directory, "README.md"));
  for (const [entry, conditions] of Object.entries(manifest.exports)) {
    const source = conditions["@halfstep/source"];
    if (source === undefined) continue;
    const bare = [...documentedExports(join(directory, source), read)].filter(([, has]) => !has);
    if (bare.length > 0)
      findings.push(
        `${posix.join(manifest.name, entry)}: no docstring for ${bare.map(([name]) => name).join(", ")}`,
      );
    const names = unmentioned(exportedValues(join(directory, source), read), readme);
    if (names.length > 0)
      findings.push(
        `${posix.join(manifest.name, entry)}: its README does not name ${names.join(", ")}`,
      );
  }
}

for (const finding of findings) console.error(finding);
console.log(`${documents.length} documents, ${findings.length} findings`);
process.exitCode = findings.length > 0 ? 1 : 0;
