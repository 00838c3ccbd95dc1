import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { writeWhole } from "../whole-file.mjs";
import { packagesFolder, unpackPackages } from "./unpack-packages.mjs";

// Mesa's software driver in the user's cache, for users who may not install it.

/** The folder of the driver; undefined for users without a home. */
export const driverFolder = (env, os) => packagesFolder("driver", env, os);

/**
 * Variables by which Vulkan finds the driver of a folder besides those of the system; none where there is none. The C library reads
 * LD_LIBRARY_PATH when a process starts.
 * @param {string | undefined} folder
 * @param {Record<string, string | undefined>} env
 * @returns {{ LD_LIBRARY_PATH?: string, XDG_DATA_DIRS?: string }}
 */
export const unpackedDriver = (folder, env) => {
  const data = folder && join(folder, "share");
  if (!data || !existsSync(manifestIn(folder))) return {};
  const { ICD } = JSON.parse(readFileSync(manifestIn(folder), "utf8"));
  const libraries = dirname(join(dirname(manifestIn(folder)), ICD.library_path));
  const paths = env.LD_LIBRARY_PATH?.split(":") ?? [];
  if (paths.includes(libraries)) return {};
  return {
    LD_LIBRARY_PATH: [...paths, libraries].join(":"),
    XDG_DATA_DIRS: [env.XDG_DATA_DIRS || "/usr/local/share:/usr/share", data].join(":"),
  };
};

/**
 * Fetches the driver of the machine's own suite, with the packages that it needs and the machine lacks, and unpacks them.
 * @param {string} folder
 * @param {{ sources: readonly string[], release?: string }} plan the texts of apt's sources files, and a release to prefer
 * @returns {Promise<string | undefined>} a description of the failure, if there is one
 */
export const unpackDriver = (folder, plan) =>
  unpackPackages(folder, {
    ...plan,
    packages: ["mesa-vulkan-drivers", "libvulkan1"],
    label: "fetching Mesa",
    complete: writeManifest,
  });

function writeManifest(folder) {
  const library = findFile(join(folder, "root", "usr", "lib"), "libvulkan_lvp.so");
  if (library === undefined) return "Mesa's packages contain no lavapipe.";
  const manifest = manifestIn(folder);
  mkdirSync(dirname(manifest), { recursive: true });
  // The manifest of the package names a library of the system.
  const ICD = { library_path: relative(dirname(manifest), library), api_version: "1.3.0" };
  writeWhole(manifest, JSON.stringify({ file_format_version: "1.0.0", ICD }));
  return undefined;
}

/** The file by which Vulkan's loader finds the driver. Its library has a path relative to it. */
const manifestIn = (folder) => join(folder, "share", "vulkan", "icd.d", "lvp_icd.json");

const findFile = (folder, name) => {
  const found = readdirSync(folder, { recursive: true }).find((path) => path.endsWith(`/${name}`));
  return found && join(folder, found);
};
