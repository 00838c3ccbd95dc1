import { writeWhole } from "../whole-file.mjs";
import { lastLines, run } from "./run.mjs";

// Packages of Debian and Ubuntu, installed by apt where the user is root.

const aptGet = (...args) => ({ command: "apt-get", args });
// Wait two minutes for another apt that holds the lock, because new cloud machines run one in the background.
const patience = ["-o", "DPkg::Lock::Timeout=120"];

/**
 * The commands that install packages.
 * @param {readonly string[]} packages
 * @param {{ release?: string }} [options] a release to take them from
 */
export const installCommands = (packages, { release } = {}) => [
  aptGet("update"),
  aptGet(
    ...["install", "-y", "--no-install-recommends", ...patience],
    ...(release ? ["-t", release] : []),
    ...packages,
  ),
];

/**
 * Writes files and runs commands.
 * @param {{ files?: readonly { path: string, text: string, why: string }[], commands: readonly { command: string, args: string[] }[] }} plan
 * @param {(line: string) => void} say
 * @returns {Promise<string | undefined>} a description of the failure, if there is one
 */
export const installPackages = async ({ files = [], commands }, say) => {
  for (const { path, text, why } of files) {
    say(`writing ${path}: ${why}`);
    try {
      writeWhole(path, text);
    } catch (error) {
      return `${path} could not be written (${error.code}).`;
    }
  }
  for (const { command, args } of commands) {
    say(`${command} ${args.join(" ")}`);
    const result = await run(command, args, {
      label: `${command} ${args[0]}`,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
    if (result.code !== 0) {
      for (const line of lastLines(result.output, 10)) say(line);
      return `${command} ${args[0]} failed with status ${result.code} (its last lines above).`;
    }
    say(`${command} ${args[0]} done in ${result.seconds.toFixed(0)} s`);
  }
  return undefined;
};
