import { createHash } from "node:crypto";
import { requestTestDevice } from "@halfstep/device/testing";
import { cpuRuntime, flatten, gpuRuntime, type Runtime, type Variable } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { parameterSha256 } from "./parameter-hash.js";

const weight = [1, -0, 2 ** -140, Number.POSITIVE_INFINITY, 0.1];
const bias = [-3, 7];

const parameters = (runtime: Runtime): Map<string, Variable> =>
  new Map([
    ["weight", runtime.variable(weight, [5])],
    ["bias", runtime.variable(bias, [2])],
  ]);

const expected = createHash("sha256")
  .update(new Uint8Array(Float32Array.from([...bias, ...weight]).buffer))
  .digest("hex");

test.each([
  ["CPU", async () => cpuRuntime()],
  ["GPU", async () => gpuRuntime(await requestTestDevice())],
] as const)("it is that of the float32 values in the order of their names: %s", async (_, open) => {
  const named = parameters(await open());
  expect(await parameterSha256(named)).toBe(expected);
  expect(await parameterSha256([...named].reverse())).toBe(expected);
  flatten(named.values());
  expect(await parameterSha256(named)).toBe(expected);
});

test("it tells one bit", async () => {
  const runtime = cpuRuntime();
  const named = parameters(runtime).set("bias", runtime.variable([-3, 7 + 2 ** -21], [2]));
  expect(await parameterSha256(named)).not.toBe(expected);
});
