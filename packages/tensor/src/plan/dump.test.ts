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
  withScope,
} from "../index.js";

test("the plan of a training step with autocast", () => {
  const runtime = cpuRuntime();
  const parameter = (name: string, ...shape: number[]): Variable =>
    runtime.variable(new Float32Array(shape.reduce((a, b) => a * b)), shape, {
      requiresGrad: true,
      name,
    });
  const hidden = parameter("first.weight", 32, 16);
  const bias = parameter("first.bias", 32);
  const output = parameter("output.weight", 4, 32);
  const plan = runtime.plan(() => {
    const x = runtime.tensor(new Float32Array(8 * 16), [8, 16]);
    const labels = runtime.tensor(new Uint32Array(8), [8]);
    const loss = autocast({ dtype: "float16" }, () => {
      const y = withScope(
        () => "first",
        () => relu(linear(x, hidden, bias)),
      );
      return crossEntropy(linear(y, output), labels);
    });
    loss.mul(65536).backward();
    for (const p of [hidden, bias, output]) {
      if (p.grad) p.assign(p.sub(p.grad.mul(0.1 / 65536)));
      p.zeroGrad();
    }
    return loss;
  });
  expect(dumpPlan(plan)).toMatchInlineSnapshot(`
    "15 launches for 34 recorded; 0 casts for 9 recorded
    memory 4.3 KiB (4,352 bytes): 7 slots for 12 values of 4.3 KiB (4,448 bytes)
    kept for the backward pass 1.1 KiB (1,120 bytes)
    beside 5.3 KiB (5,392 bytes) of parameters, gradients and other state in 7 buffers
    fullest at launch 9: gradient 2.0 KiB (2,048 bytes), kept 16 bytes

       3 × identity (f32 → f32)
       1 × matmul (f16 f16 → f16→f32)
       1 × matmul (f16 f32→f16 → f16)
       1 × matmul (f16 f32→f16 → f16→f32 f16→f32)
       1 × matmul+add+relu (f32→f16 f32→f16 f32→f16 → f16)
       1 × matmul+reluBackward (f16 f32→f16 f16 → f16)
       1 × reduce (f32 → f32)
       1 × scale (f32 → f32)
       3 × scale+sub (f32 f32 → f32)
       1 × softmaxCrossEntropy (f16 u32 → f32)
       1 × softmaxCrossEntropyBackward (f16 u32 f32 → f16)

    forward
       0  matmul+add+relu              first: linear, relu                  s0 f32→f16[8×16], first.weight f32→f16[32×16], first.bias f32→f16[32] → s1 f16[8×32]
       1  matmul                       linear                               s1 f16[8×32], output.weight f32→f16[4×32] → s3 f16[8×4]
       2  softmaxCrossEntropy          crossEntropy                         s3 f16[8×4], s2 u32[8] → s4 f32[8]
       3  reduce                       crossEntropy                         s4 f32[8] → s5 f32[]

    backward and update
       4  scale                        grad of scale                        r3 f32[] → s4 f32[]
       5  softmaxCrossEntropyBackward  grad of crossEntropy                 s3 f16[8×4], s2 u32[8], s4 f32[] → s6 f16[8×4]
       6  matmul                       grad of linear                       s6 f16[8×4], s1 f16[8×32] → grad f16→f32[4×32]
       7  matmul+reluBackward          grad of linear; first: grad of relu  s6 f16[8×4], output.weight f32→f16[4×32], s1 f16[8×32] → s2 f16[8×32]
       8  matmul                       first: grad of linear                s2 f16[8×32], s0 f32→f16[8×16] → grad f16→f32[32], grad f16→f32[32×16]
       9  scale+sub                    scale, sub                           grad f32[32×16], first.weight f32[32×16] → s0 f32[32×16]
      10  identity                                                          s0 f32[32×16] → first.weight f32[32×16]
      11  scale+sub                    scale, sub                           grad f32[32], first.bias f32[32] → s6 f32[32]
      12  identity                                                          s6 f32[32] → first.bias f32[32]
      13  scale+sub                    scale, sub                           grad f32[4×32], output.weight f32[4×32] → s2 f32[4×32]
      14  identity                                                          s2 f32[4×32] → output.weight f32[4×32]

    slot 0    2.0 KiB (2,048 bytes)          –8 activation | 9–10 gradient
    slot 1    512 bytes                      0–7 activation
    slot 2    512 bytes                      –5 activation | 7–8 gradient | 13–14 gradient
    slot 3    256 bytes                      1–5 activation
    slot 4    256 bytes                      2–3 temporary | 4–5 gradient
    slot 5    256 bytes                      3– kept
    slot 6    256 bytes                      5–7 gradient | 11–12 gradient"
  `);
  expect(dumpPlan(plan)).toContain(dumpPlan(plan, { detail: "summary" }));
  // Nothing has been computed, and no gradient is left.
  expect(runtime.lastPlan).toBe(undefined);
  expect([hidden, bias, output].map(({ grad }) => grad)).toEqual([undefined, undefined, undefined]);
});

test("the plan of a step that has run", async () => {
  const runtime = cpuRuntime({ noteOps: true });
  const doubled = await runtime.step(() => runtime.tensor([1, 2]).mul(2));
  expect([...(await doubled.toArray())]).toEqual([2, 4]);
  expect(dumpPlan(runtime.lastPlan as Plan)).toMatchInlineSnapshot(`
    "1 launches for 1 recorded; 0 casts for 0 recorded
    memory 768 bytes: 2 slots for 2 values of 32 bytes
    kept for the backward pass 0 bytes
    beside 0 bytes of parameters, gradients and other state in 0 buffers
    fullest at launch 0: input 16 bytes, kept 16 bytes

       1 × scale (f32 → f32)

    forward
       0  scale  scale  s0 f32[2] → s1 f32[2]

    slot 0    256 bytes                      –0 input
    slot 1    256 bytes                      0– kept"
  `);
});
