import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { machine } from "./driver.mjs";
import { lastLines, run } from "./run.mjs";

// The browsers of the tests.

/**
 * @typedef Kind
 * @property {string} name for people
 * @property {string[]} variables of the environment that may name its executable
 * @property {string[]} names of its executable on the path
 * @property {string} package of Debian
 */

/** @type {Kind} */
export const chromium = {
  name: "Chromium",
  variables: ["CHROME_PATH", "CHROME_BIN"],
  names: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
  package: "chromium",
};

/** @type {Kind} */
export const firefox = {
  name: "Firefox",
  variables: ["FIREFOX_PATH"],
  names: ["firefox", "firefox-esr"],
  package: "firefox-esr",
};

/**
 * The executable of a browser: the one that a variable names, else the first on the path.
 * @param {Kind} kind
 * @param {Record<string, string | undefined>} env
 * @returns {string | undefined}
 */
export const findBrowser = ({ variables, names }, env = process.env) => {
  const folders = (env.PATH ?? "").split(delimiter).filter(Boolean);
  return [
    ...variables.map((variable) => env[variable]),
    ...names.flatMap((name) => folders.map((folder) => join(folder, name))),
  ]
    .filter(Boolean)
    .find(isExecutable);
};

const isExecutable = (path) => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * The command that installs a browser, or instructions where this program may not.
 * @param {Kind} kind
 * @param {Pick<ReturnType<typeof machine>, "platform" | "root" | "mayInstall" | "apt" | "os">} machine
 * @returns {{ commands: string[][] } | { instructions: string }}
 */
export const browserPlan = (kind, { platform, root, mayInstall, apt, os }) => {
  const byHand = `install ${kind.name}, or name the executable of one in ${kind.variables[0]}`;
  if (platform !== "linux") return { instructions: byHand };
  // Ubuntu's packages only point to snaps.
  if (os.ID !== "debian" || !apt) return { instructions: byHand };
  const commands = [
    ["apt-get", "update"],
    ["apt-get", "install", "-y", "--no-install-recommends", kind.package],
  ];
  if (root && mayInstall) return { commands };
  return { instructions: `as root: ${commands.map((command) => command.join(" ")).join(" && ")}` };
};

/**
 * Finds a browser, and installs one where there is none and the machine allows it.
 * @param {Kind} kind
 * @param {(line: string) => void} say
 * @returns {Promise<{ executable: string } | { missing: string }>}
 */
export const ensureBrowser = async (kind, say) => {
  if (findBrowser(kind) === undefined) {
    const plan = browserPlan(kind, machine());
    for (const [command, ...args] of plan.commands ?? []) {
      say(`no ${kind.name} was found: ${command} ${args.join(" ")}`);
      const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
      const { code, output } = await run(command, args, { label: command, env });
      if (code !== 0) return { missing: lastLines(output, 3).join("\n") };
    }
    if (plan.instructions) return { missing: plan.instructions };
  }
  const executable = findBrowser(kind);
  if (executable === undefined) return { missing: `the package ${kind.package} has no executable` };
  return { executable };
};
