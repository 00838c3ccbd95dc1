import { Command } from "commander";
import { exitCodes } from "./program.js";

/**
 * Makes a command for {@link program}. It throws instead of ending the process, writes no errors itself, and refuses
 * unknown arguments. Its help and that of its subcommands end with the exit codes.
 *
 * @example
 * const main = command("npm start -w images --", "Trains a classifier of images.");
 * const train = runFlags(main.command("train <dir>"), { epochs: 90, lr: 0.1, seed: 0, out: "runs/images" });
 */
export const command = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .helpOption("-h, --help", "show this help")
    .addHelpText("afterAll", `\n${exitCodes}`)
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
