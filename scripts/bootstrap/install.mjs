import { readFileSync } from "node:fs";
import { join } from "node:path";

const readJson = (path) => {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
};

/**
 * The locked packages (`package-lock.json`) and the installed ones: npm writes `node_modules/.package-lock.json` as the
 * last act of a successful install, so an interrupted one shows as missing.
 * @param {string} root the folder of `package-lock.json`
 */
export const readInstallState = (root) => ({
  lock: readJson(join(root, "package-lock.json")),
  installed: readJson(join(root, "node_modules", ".package-lock.json")),
});

/**
 * Why the dependencies must be installed again, or undefined when they are up to date. Packages that npm may leave out
 * (builds for other platforms) are not required, and additional packages are harmless.
 * @returns {string | undefined}
 */
export const staleInstall = (lock, installed) => {
  if (lock === undefined) return "package-lock.json is missing or unreadable";
  if (installed === undefined) return "node_modules is missing or incomplete";
  for (const [path, wanted] of Object.entries(lock.packages)) {
    if (!/(^|\/)node_modules\//.test(path)) continue;
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const present = installed.packages[path];
    if (present === undefined) {
      if (wanted.optional || wanted.devOptional) continue;
      return `${name} is not installed`;
    }
    if (present.version !== wanted.version) {
      return `${name} is ${present.version} where package-lock.json wants ${wanted.version}`;
    }
    if (wanted.integrity !== undefined && present.integrity !== wanted.integrity) {
      return `${name} ${wanted.version} has other contents than package-lock.json wants`;
    }
    if (Boolean(present.link) !== Boolean(wanted.link)) return `${name} is linked to another place`;
  }
  return undefined;
};
