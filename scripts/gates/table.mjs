// The gates: every check besides `npm test`.
import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/**
 * @typedef Gate
 * @property {string} name
 * @property {string[]} command
 * @property {boolean} [counts] its last line is a total of its own
 * @property {number} [minutes] the most that it may take; default 15
 * @property {string} [missing] why it cannot run here
 */

const npm = (script, ...args) => ["npm", "run", "--silent", script, ...args];
const turbo = (...tasks) => ["npx", "turbo", "run", ...tasks, "--output-logs=errors-only"];

/** A commit-ish that stands for main, in a clone or at the origin; undefined where there is neither. */
const mainBranch = () => {
  for (const ref of ["main", "origin/main"]) {
    try {
      execFileSync("git", ["rev-parse", "--verify", "--quiet", ref], {
        cwd: root,
        stdio: "ignore",
      });
      return ref;
    } catch {
      // The next name is tried.
    }
  }
  return undefined;
};
const main = mainBranch();

/** These build, and read what was built: not beside each other, because turbo may write the same files again. @type {Gate[]} */
export const gatesOfBuilds = [
  { name: "build", command: turbo("build") },
  { name: "types", command: ["node", "scripts/built-types.mjs"] },
  { name: "pack", command: turbo("pack:check") },
  { name: "size", command: npm("size") },
  { name: "node-versions", command: ["node", "scripts/node-versions.mjs"], counts: true },
  { name: "packed", command: ["node", "scripts/packed-install.mjs"], counts: true },
];

/** @type {Gate[]} */
export const gatesOfSources = [
  { name: "lint", command: ["npx", "biome", "check", ".", "--error-on-warnings"] },
  { name: "documents", command: ["node", "scripts/documents.mjs"] },
  { name: "prose", command: ["node", "scripts/prose.mjs"] },
  { name: "writers", command: ["node", "scripts/writers.mjs"] },
  { name: "boundaries", command: npm("boundaries") },
  { name: "methods", command: ["node", "scripts/methods.mjs"] },
  { name: "typecheck", command: npm("typecheck") },
  { name: "knip", command: npm("knip") },
  { name: "hostile", command: ["node", "scripts/hostile.mjs"] },
  // The packed tier differs from the native one in conversions alone, which tests compare bit by bit.
  { name: "ledger", command: ["node", "scripts/ledger.mjs", "cpu", "native"] },
  // It takes one to two minutes on two busy cores.
  { name: "docs", command: npm("docs"), minutes: 5 },
  { name: "docs:test", command: npm("docs:test") },
  { name: "bundles", command: npm("test:bundles") },
  { name: "parity", command: npm("test:parity", "-w", "digits") },
  {
    name: "changeset",
    command: ["npx", "changeset", "status", `--since=${main}`],
    missing: main === undefined ? "this clone has no main to compare with" : undefined,
  },
];

/** These occupy two cores by themselves. @type {Gate[]} */
export const gatesOfTwoCores = [
  // Ten minutes on two quiet cores.
  { name: "lanes", command: ["node", "scripts/lanes.mjs"], counts: true, minutes: 40 },
  // Five minutes on two quiet cores.
  { name: "browser", command: ["node", "scripts/test-browser.mjs"], counts: true, minutes: 30 },
];
