import { LeftOutError } from "@halfstep/device";
import { expect, test } from "vitest";
import { GpuExchange } from "./no-gpu-exchange.js";
import { HostCalls } from "./no-host-calls.js";

// What inference-only builds have in place of host ops.

test("host ops that were left out are named, with the condition", () => {
  const make = GpuExchange as unknown as new () => unknown;
  for (const use of [() => new HostCalls().open(), () => new make()]) {
    expect(use).toThrow(LeftOutError);
    expect(use).toThrow('this bundle leaves out host ops: remove "@halfstep/inference-only"');
  }
});

test("the first error of work that waited stays", async () => {
  const calls = new HostCalls();
  expect([calls.isBusy, calls.failure]).toEqual([false, undefined]);
  calls.fail("no program");
  calls.fail(new Error("later"));
  expect(calls.failure).toEqual(new Error("no program"));
  await calls.ended();
});
