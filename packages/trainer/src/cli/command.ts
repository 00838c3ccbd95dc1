import { Command } from "commander";
import { exitCodes } from "./program.js";

/**
 * A command that {@link program} can report on: it throws in place of ending the process, writes no error itself, takes no
 * arguments that it does not name, and its help, with that of its subcommands, ends with the exit codes.
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
