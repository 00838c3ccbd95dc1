import { mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeWhole } from "../whole-file.mjs";
import { osRelease } from "./driver.mjs";
import { lastLines, run } from "./run.mjs";

// Packages of Debian and Ubuntu in the user's cache, for users who may not install them.

const script = join(dirname(fileURLToPath(import.meta.url)), "unpack-packages.sh");

/**
 * The folder of unpacked packages; undefined for users without a home. Each release of a system has folders of its own.
 * @param {string} name what the packages are for
 * @param {Record<string, string | undefined>} env
 * @param {Record<string, string>} os the fields of os-release
 */
export const packagesFolder = (name, env = process.env, os = osRelease()) => {
  const { ID = "linux", VERSION_ID = "rolling" } = os;
  const cache = env.XDG_CACHE_HOME || (env.HOME && join(env.HOME, ".cache"));
  return cache && join(cache, "halfstep", `${name}-${ID}-${VERSION_ID}-${process.arch}`);
};

/**
 * Fetches packages of the machine's own suite, with those that they need and the machine lacks, and unpacks them into `root` of a
 * folder, which appears whole.
 * @param {string} folder
 * @param {{ packages: readonly string[], label: string, sources: readonly string[], release?: string, complete?: (folder: string) => string | undefined }} plan
 * `sources` are the texts of apt's sources files, `release` is one to prefer; `complete` adds to the folder before it appears, or says
 * what fails
 * @returns {Promise<string | undefined>} a description of the failure, if there is one
 */
export const unpackPackages = async (folder, plan) => {
  const partial = `${folder}.${process.pid}.partial`;
  try {
    const failure = (await unpackInto(partial, plan)) ?? plan.complete?.(partial);
    if (failure === undefined) {
      rmSync(folder, { recursive: true, force: true });
      renameSync(partial, folder);
    }
    return failure;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
};

async function unpackInto(folder, { packages, label, sources, release = "" }) {
  const sourcesFolder = join(folder, "sources");
  mkdirSync(sourcesFolder, { recursive: true });
  for (const [i, text] of sources.entries()) {
    const extension = /^\s*Types\s*:/im.test(text) ? "sources" : "list";
    writeWhole(join(sourcesFolder, `${i}.${extension}`), text);
  }
  const folders = [folder, sourcesFolder, "/var/lib/dpkg/status"];
  const { code, output } = await run(script, [...folders, release, ...packages], { label });
  if (code !== 0) return lastLines(output, 5).join("\n");
  rmSync(join(folder, "archives"), { recursive: true });
  return undefined;
}
