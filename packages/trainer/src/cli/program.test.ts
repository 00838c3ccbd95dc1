import { DeviceLostError, NoAdapterError } from "@halfstep/device";
import { SafetensorsError } from "@halfstep/safetensors";
import { afterEach, describe, expect, it } from "vitest";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { StorageError } from "../errors.js";
import { command } from "./command.js";
import { exitCodeOf, program, UsageError } from "./program.js";

const saved = process.exitCode;
afterEach(() => {
  process.exitCode = saved;
  delete process.env.HALFSTEP_DEBUG;
});

/** An error of a package that is not imported here. */
const branded = (name: string): Error =>
  Object.assign(new Error("x"), { [Symbol.for(`@halfstep/${name}`)]: true });

const ofSystem = (code: string): Error => Object.assign(new Error(code), { code, syscall: "open" });

describe("exitCodeOf", () => {
  it("follows the documented codes", () => {
    const cases: readonly (readonly [unknown, number])[] = [
      [new Error("it diverged"), 1],
      ["a string", 1],
      [undefined, 1],
      [branded("ScaleCollapseError"), 1],
      [new UsageError("--a and --b"), 2],
      [branded("DataError"), 2],
      [new CheckpointError("hash", "there", "is damaged"), 2],
      [new SafetensorsError("truncated", "ends early", {}), 2],
      [ofSystem("ENOENT"), 2],
      [new NoAdapterError("none"), 3],
      [new DeviceLostError("GPU", "unknown", "gone"), 3],
      [new StorageError("there", ofSystem("ENOSPC")), 4],
      [ofSystem("ENOSPC"), 4],
      [Object.assign(new Error("not of the system"), { code: "ENOENT" }), 1],
    ];
    expect(cases.map(([error]) => exitCodeOf(error))).toEqual(cases.map(([, code]) => code));
  });
});

/** What a program says, and its exit code. */
async function outcome(
  main: (args: readonly string[]) => Promise<number>,
  args: readonly string[] = [],
): Promise<readonly [code: unknown, ...said: string[]]> {
  const said: string[] = [];
  await program(main, { args, say: (line) => said.push(line) });
  return [process.exitCode, ...said];
}

describe("program", () => {
  it("ends with the code of its main function, which gets the arguments", async () => {
    expect(await outcome(async (args) => args.length, ["a", "b"])).toEqual([2]);
  });

  it("says the first line of what was thrown", async () => {
    const main = async () => {
      throw new UsageError("--arch needs --data\nand more");
    };
    expect(await outcome(main)).toEqual([2, "error: --arch needs --data"]);
  });

  it("says where it was thrown to whoever wants to know", async () => {
    process.env.HALFSTEP_DEBUG = "1";
    const [code, line, stack] = await outcome(async () => {
      throw new RangeError("no");
    });
    expect([code, line]).toEqual([1, "error: no"]);
    expect(stack).toMatch(/RangeError: no\n +at .*program\.test/);
  });

  it("reports on commands: help is no error, a missing command is", async () => {
    const main = async (args: readonly string[]) => {
      const commands = command("x", "Does.");
      commands.configureOutput({ writeOut: () => {} });
      commands.command("train").action(() => {});
      await commands.parseAsync(args, { from: "user" });
      return 0;
    };
    expect(await outcome(main, ["--help"])).toEqual([0]);
    expect(await outcome(main, ["train"])).toEqual([0]);
    expect(await outcome(main, [])).toEqual([2, "error: no command was given: --help lists them"]);
    expect(await outcome(main, ["train", "--fats"])).toEqual([2, "error: unknown option '--fats'"]);
  });
});
