import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readInstallState, staleInstall } from "./install.mjs";
import { lastLines, run } from "./run.mjs";

/**
 * Where the apps keep what they train on: `apps/APP/datasets` has a package.json and a lock file of its own, outside of the
 * workspaces, so that `npm start` does not download what another app reads.
 * @param {string} root of the repository
 * @returns {string[]} names of apps
 */
export const appsWithDatasets = (root) =>
  readdirSync(join(root, "apps")).filter((app) =>
    existsSync(join(root, "apps", app, "datasets", "package.json")),
  );

/**
 * Installs the data sets of an app where they are missing or others than the lock file says.
 * @param {string} root of the repository
 * @param {string} app
 * @param {(line: string) => void} say
 * @returns {Promise<string[]>} the lines that tell what went wrong; none where all is there
 */
export const installDatasets = async (root, app, say) => {
  const folder = join(root, "apps", app, "datasets");
  const { lock, installed } = readInstallState(folder);
  const stale = staleInstall(lock, installed);
  if (stale === undefined) return [];
  say(`the data of ${app}: ${stale}; installing it (once)`);
  // A package of data has nothing to run.
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund"];
  const result = await run("npm", ["ci", ...flags], {
    cwd: folder,
    label: `data of ${app}`,
    stream: process.stderr,
  });
  if (result.code !== 0)
    return [
      ...lastLines(result.output, 10),
      `the data of ${app} could not be installed in ${folder}`,
    ];
  say(`the data of ${app} is there after ${result.seconds.toFixed(0)} s`);
  return [];
};
