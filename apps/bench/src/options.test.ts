import { expect, test } from "vitest";
import { parseOptions, UsageError } from "./options.js";

test("flags and their defaults", () => {
  expect(parseOptions([])).toEqual({
    isQuick: false,
    rounds: 15,
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
    only: ["gemm", "mlp"],
    withPeers: false,
    out: "runs/bench",
    json: false,
    dumpPlan: true,
    adapter: "1",
  });
  expect(parseOptions(["-h"])).toBe("help");
});

test.each([["--rounds", "1"], ["--rounds", "many"], ["--fast"], ["gemm"]])(
  "%s %s is refused",
  (...args) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
  },
);
