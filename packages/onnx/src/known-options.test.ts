import { Linear } from "@halfstep/nn";
import { cpuRuntime, Generator } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { auditHalf, fromOnnx, toOnnx } from "./index.js";

test("unknown options are refused", async () => {
  const runtime = cpuRuntime();
  const model = new Linear(runtime, 2, 2, { generator: new Generator(1) });
  const x = runtime.zeros([1, 2]);
  const wrong = { opsets: 17 } as never;
  await expect(toOnnx(model, [x], wrong)).rejects.toThrow(
    "toOnnx: there is no option opsets; pass any of opset,",
  );
  const bytes = await toOnnx(model, [x]);
  expect(() => fromOnnx(runtime, bytes, wrong)).toThrow("fromOnnx: there is no option opsets");
  const read = fromOnnx(runtime, bytes);
  await expect(auditHalf(read, { input: x }, wrong)).rejects.toThrow(
    "auditHalf: there is no option opsets",
  );
});
