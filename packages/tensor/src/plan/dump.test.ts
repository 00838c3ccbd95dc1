import { autocast } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  cpuRuntime,
  crossEntropy,
  dumpPlan,
  linear,
  type Plan,
  relu,
  type Variable,
} from "../index.js";

test("the plan of a training step with autocast", async () => {
  const runtime = cpuRuntime();
  const parameter = (...shape: number[]): Variable =>
    runtime.variable(new Float32Array(shape.reduce((a, b) => a * b)), shape, {
      requiresGrad: true,
    });
  const [hidden, bias, output] = [parameter(32, 16), parameter(32), parameter(4, 32)];
  const loss = await runtime.step(() => {
    const x = runtime.tensor(new Float32Array(8 * 16), [8, 16]);
    const labels = runtime.tensor(new Uint32Array(8), [8]);
    const loss = autocast({ dtype: "float16" }, () =>
      crossEntropy(linear(relu([linear(x, hidden, bias)], null), output), labels),
    );
    loss.mul(65536).backward();
    for (const p of [hidden, bias, output]) {
      if (p.grad) p.assign(p.sub(p.grad.mul(0.1 / 65536)));
      p.zeroGrad();
    }
    return loss;
  });
  expect(loss.dtype).toBe("float32");
  expect(dumpPlan(runtime.lastPlan as Plan)).toMatchInlineSnapshot(`
    "   0  matmul+add+relu              slot 0 float32[128] through float16, resident 0 float32[512] through float16, resident 1 float32[32] through float16, → slot 2 float16[256]
       1  matmul                       slot 2 float16[256], resident 2 float32[128] through float16, → slot 3 float32[32] through float16
       2  softmaxCrossEntropy          slot 3 float32[32], slot 1 uint32[8], → slot 4 float32[8]
       3  reduce                       slot 4 float32[8], → slot 5 float32[1]
       4  scale+scale                  resident 3 float32[1], → slot 4 float32[1]
       5  identity                     slot 4 float32[1], → slot 6 float32[8]
       6  softmaxCrossEntropyBackward  slot 3 float32[32], slot 1 uint32[8], slot 6 float32[8], → slot 4 float16[32]
       7  matmul                       slot 4 float16[32], slot 2 float16[256], → resident 6 float32[128] through float16
       8  matmul+reluBackward          slot 4 float16[32], resident 2 float32[128] through float16, slot 2 float16[256], → slot 1 float16[256]
       9  reduce                       slot 1 float16[256], → resident 5 float32[32] through float16
      10  matmul                       slot 1 float16[256], slot 0 float32[128] through float16, → resident 4 float32[512] through float16
      11  scale+sub                    resident 4 float32[512], resident 0 float32[512], → slot 0 float32[512]
      12  identity                     slot 0 float32[512], → resident 0 float32[512]
      13  scale+sub                    resident 5 float32[32], resident 1 float32[32], → slot 3 float32[32]
      14  identity                     slot 3 float32[32], → resident 1 float32[32]
      15  scale+sub                    resident 6 float32[128], resident 2 float32[128], → slot 1 float32[128]
      16  identity                     slot 1 float32[128], → resident 2 float32[128]
    slots: 0: 2048, 1: 512, 2: 512, 3: 256, 4: 256, 5: 256, 6: 256
    37 launches recorded, 17 planned; 9 casts recorded, 0 left; 4352 bytes at most, 1184 held for the backward pass"
  `);
});
