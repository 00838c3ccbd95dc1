import { cpuRuntime } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import type { Carrier } from "../carrier.js";
import { inProcess } from "../in-process/in-process.js";
import { DiLoCo, type DiLoCoOptions } from "./diloco.js";

/** Two ranks that count down from different starts by different strides: their parameters after some steps. */
async function countDown(steps: number, options: DiLoCoOptions): Promise<readonly number[][]> {
  return Promise.all(
    inProcess(2, { hosts: ["a", "b"] }).map(async (carrier) => {
      const runtime = cpuRuntime();
      const weight = runtime.variable(Float32Array.of(8 + carrier.rank, -1), [2]);
      const bias = runtime.variable(Float32Array.of(2), [1]);
      const diloco = new DiLoCo(carrier, [weight, bias], options);
      await diloco.begin();
      for (let step = 1; step <= steps; step++) {
        await runtime.step(() => weight.assign(weight.sub(1 + carrier.rank)));
        await diloco.afterStep({ step });
      }
      return [...(await weight.toArray()), ...(await bias.toArray())];
    }),
  );
}

describe("DiLoCo", () => {
  it("takes Nesterov steps along the mean difference, and leaves ranks alone in between", async () => {
    // Each two steps change the first parameter by 2 and by 4: 3 in the mean.
    const options = { innerSteps: 2, lr: 0.5, momentum: 0.5 };
    const first = 8 - 0.5 * (3 + 0.5 * 3);
    const second = first - 0.5 * (3 + 0.5 * 4.5);
    expect(await countDown(2, options)).toEqual([
      [first, first - 9, 2],
      [first, first - 9, 2],
    ]);
    expect(await countDown(5, options)).toEqual([
      [second - 1, second - 10, 2],
      [second - 2, second - 11, 2],
    ]);
  });

  it("ends training with equal parameters", async () => {
    const [a, b] = await countDown(5, { innerSteps: 2, lastStep: 5 });
    expect(a).toEqual(b);
  });

  it("ends training that was stopped with equal parameters, once", async () => {
    const ranks = await Promise.all(
      inProcess(2, { hosts: ["a", "b"] }).map(async (carrier) => {
        const runtime = cpuRuntime();
        const weight = runtime.variable(Float32Array.of(carrier.rank), [1]);
        const diloco = new DiLoCo(carrier, [weight], { innerSteps: 3, lr: 1, momentum: 0 });
        await diloco.begin();
        await diloco.onEnd();
        await runtime.step(() => weight.assign(weight.sub(2 + carrier.rank)));
        await diloco.afterStep({ step: 1 });
        await diloco.onEnd();
        await diloco.onEnd();
        return { values: [...(await weight.toArray())], collectives: carrier.traffic.collectives };
      }),
    );
    for (const { values } of ranks) expect(values).toEqual([-2.5]);
    // Those of the first parameters, and of one outer step.
    expect(ranks.map(({ collectives }) => collectives)).toEqual([2, 2]);
  });

  it("is stopped on all ranks after the same outer step", async () => {
    const told = new AbortController();
    const steps = await Promise.all(
      inProcess(2, { hosts: ["a", "b"] }).map(async (carrier) => {
        const runtime = cpuRuntime();
        const weight = runtime.variable(Float32Array.of(1), [1]);
        const signal = carrier.rank === 1 ? told.signal : undefined;
        const diloco = new DiLoCo(carrier, [weight], { innerSteps: 3, signal });
        await diloco.begin();
        for (let step = 1; step <= 20; step++) {
          if (step === 4) told.abort();
          await diloco.afterStep({ step });
          if (diloco.signal.aborted) return step;
        }
        return 0;
      }),
    );
    expect(steps).toEqual([6, 6]);
  });

  it("refuses parameters in 16 bits, and none", () => {
    const [carrier] = inProcess(1) as [Carrier];
    const half = cpuRuntime().variable([1], [1], { dtype: "float16", name: "half" });
    expect(() => new DiLoCo(carrier, [half])).toThrow("half is stored as float16");
    expect(() => new DiLoCo(carrier, [])).toThrow("pass model.parameters()");
    expect(() => new DiLoCo(carrier, {} as never)).toThrow("pass model.parameters()");
  });

  it("goes on from a checkpoint", async () => {
    const [carrier] = inProcess(1) as [Carrier];
    const runtime = cpuRuntime();
    const weight = runtime.variable(Float32Array.of(4), [1]);
    const diloco = new DiLoCo(carrier, [weight], { innerSteps: 1, lr: 1, momentum: 0.5 });
    expect(() => diloco.stateDict()).toThrow("begin()");
    await diloco.begin();
    diloco.loadStateDict({ shared: Float32Array.of(6), momentum: Float32Array.of(2) });
    await diloco.afterStep({ step: 1 });
    // The difference is 2, the momentum 3.
    expect([...(await weight.toArray())]).toEqual([6 - (2 + 1.5)]);
    expect(diloco.stateDict().momentum).toEqual(Float32Array.of(3));
    const other = { shared: new Float32Array(2), momentum: new Float32Array(2) };
    expect(() => diloco.loadStateDict(other)).toThrow(RangeError);
  });

  it("refuses options without a meaning", () => {
    const [carrier] = inProcess(1) as [Carrier];
    for (const options of [{ innerSteps: 0 }, { lr: 0 }, { momentum: 1 }])
      expect(() => new DiLoCo(carrier, [], options)).toThrow(RangeError);
  });
});
