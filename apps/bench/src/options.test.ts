import { expect, test } from "vitest";
import { parseOptions, UsageError } from "./options.js";

test("flags and their defaults", () => {
  expect(parseOptions([])).toEqual({
    isQuick: false,
    rounds: 15,
    processes: 3,
    only: [],
    withPeers: true,
    out: "runs/bench",
    json: false,
    dumpPlan: false,
  });
  expect(
    parseOptions(["--quick", "--only", "gemm,mlp", "--no-peers", "--adapter", "1", "--dump-plan"]),
  ).toEqual({
    isQuick: true,
    rounds: 7,
    processes: 2,
    only: ["gemm", "mlp"],
    withPeers: false,
    out: "runs/bench",
    json: false,
    dumpPlan: true,
    adapter: "1",
  });
  expect(parseOptions(["-h"])).toBe("help");
});

test("no process is without a round", () => {
  expect(parseOptions(["--rounds", "2"])).toMatchObject({ rounds: 2, processes: 2 });
  expect(parseOptions(["--rounds", "4", "--processes", "4"])).toMatchObject({ processes: 4 });
  expect(() => parseOptions(["--rounds", "4", "--processes", "5"])).toThrow(
    "--processes 5: it must be a whole number from 1 to 4, that of the rounds",
  );
});

test.each([
  ["--rounds", "1"],
  ["--rounds", "many"],
  ["--processes", "0"],
  ["--processes", "1.5"],
  ["--fast"],
  ["gemm"],
])("%s %s is refused", (...args) => {
  expect(() => parseOptions(args)).toThrow(UsageError);
});
