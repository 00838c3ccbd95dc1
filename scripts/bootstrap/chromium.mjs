import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { findSwiftShader } from "../lanes/swiftshader.mjs";
import { machine } from "./driver.mjs";
import { lastLines, run } from "./run.mjs";

// The Chromium of the tests in a browser.

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/**
 * The executable of a Chromium: the one that CHROME_PATH or CHROME_BIN names, else the first on the path.
 * @param {Record<string, string | undefined>} env
 * @returns {string | undefined}
 */
export const findChromium = (env = process.env) => {
  const folders = (env.PATH ?? "").split(delimiter).filter(Boolean);
  return [
    env.CHROME_PATH,
    env.CHROME_BIN,
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
 * The command that installs Chromium, or instructions where this program may not.
 * @param {Pick<ReturnType<typeof machine>, "platform" | "root" | "mayInstall" | "apt" | "os">} machine
 * @returns {{ commands: string[][] } | { instructions: string }}
 */
export const chromiumPlan = ({ platform, root, mayInstall, apt, os }) => {
  const byHand = "install Chromium, or name the executable of one in CHROME_PATH";
  if (platform !== "linux") return { instructions: byHand };
  // Ubuntu's package only points to a snap.
  if (os.ID !== "debian" || !apt) return { instructions: byHand };
  const commands = [
    ["apt-get", "update"],
    ["apt-get", "install", "-y", "--no-install-recommends", "chromium"],
  ];
  if (root && mayInstall) return { commands };
  return { instructions: `as root: ${commands.map((command) => command.join(" ")).join(" && ")}` };
};

/**
 * Finds a Chromium, and installs one where there is none and the machine allows it.
 * @param {(line: string) => void} say
 * @returns {Promise<{ executable: string, swiftShader: string | undefined } | { missing: string }>} `swiftShader`: the manifest of its Vulkan driver
 */
export const ensureChromium = async (say) => {
  if (findChromium() === undefined) {
    const plan = chromiumPlan(machine());
    for (const [command, ...args] of plan.commands ?? []) {
      say(`no Chromium was found: ${command} ${args.join(" ")}`);
      const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
      const { code, output } = await run(command, args, { label: command, env });
      if (code !== 0) return { missing: lastLines(output, 3).join("\n") };
    }
    if (plan.instructions) return { missing: plan.instructions };
  }
  const executable = findChromium();
  if (executable === undefined) return { missing: "the package chromium has no executable" };
  return { executable, swiftShader: findSwiftShader() };
};
