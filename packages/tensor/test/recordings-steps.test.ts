import { elementwise, identity } from "@halfstep/kernels";
import { describe, expect, test, vi } from "vitest";
import {
  ClosedTensorError,
  cpuRuntime,
  RecordingError,
  type Runtime,
  type Tensor,
} from "../src/index.js";

// Rules 1 to 5 of the semantics of recordings, on the CPU runner.

const read = async (tensor: Tensor): Promise<number[]> => [...(await tensor.toArray())];

describe("one runtime (1)", () => {
  const pair = (): { ours: Runtime; theirs: Runtime } => ({
    ours: cpuRuntime(),
    theirs: cpuRuntime(),
  });

  test("an op refuses tensors of two runtimes", () => {
    const { ours, theirs } = pair();
    const add = (): unknown => ours.tensor([1]).add(theirs.tensor([2]));
    expect(add).toThrow(RecordingError);
    expect(add).toThrow(/add: its inputs belong to different runtimes/);
  });

  test("a variable takes no value and no guard of another runtime", () => {
    const { ours, theirs } = pair();
    const v = ours.variable([1], [1]);
    expect(() => v.assign(theirs.tensor([2]))).toThrow(/different runtimes/);
    expect(() => v.assign(ours.tensor([2]), { unless: theirs.tensor([0]) })).toThrow(
      /different runtimes/,
    );
  });

  test("so does a launch of a kernel of one's own", () => {
    const { ours, theirs } = pair();
    const launch = elementwise(
      identity,
      [ours.tensor([1]).operand()],
      theirs.variable([0], [1]).operand(),
    );
    expect(() => ours.target.launch(launch)).toThrow(/identity: its operands belong to different/);
  });

  test("what is refused leaves no trace", async () => {
    const { ours, theirs } = pair();
    const v = ours.variable([1], [1]);
    const sum = v.add(1);
    expect(() => v.assign(theirs.tensor([2]))).toThrow(RecordingError);
    expect(await read(sum)).toEqual([2]);
    expect(await read(v)).toEqual([1]);
  });
});

describe("steps (2)", () => {
  test("a step resolves after a macrotask, so that signals and timers are served", async () => {
    const runtime = cpuRuntime();
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    await runtime.step(() => runtime.tensor([1]).add(1));
    expect(turned).toBe(true);
  });

  test("a step inside or beside an open one is refused", async () => {
    const runtime = cpuRuntime();
    let inner: Promise<number> | undefined;
    const first = runtime.step(() => {
      inner = runtime.step(() => 1);
      inner.catch(() => {});
      return 2;
    });
    await expect(runtime.step(() => 3)).rejects.toThrow(/another step of this runtime is open/);
    expect(await first).toBe(2);
    await expect(inner).rejects.toThrow(RecordingError);
    expect(await runtime.step(() => 4)).toBe(4);
  });

  test("steps of two runtimes may be open together", async () => {
    const [a, b] = [cpuRuntime(), cpuRuntime()];
    const [x, y] = await Promise.all([
      a.step(() => a.tensor([1]).add(1)),
      b.step(() => b.tensor([1]).add(2)),
    ]);
    expect([await x.item(), await y.item()]).toEqual([2, 3]);
  });

  test("a flush inside a step is refused", async () => {
    const runtime = cpuRuntime();
    let flushed: Promise<void> | undefined;
    await runtime.step(() => {
      flushed = runtime.flush();
      flushed.catch(() => {});
      return 0;
    });
    await expect(flushed).rejects.toThrow(/flush\(\) inside a step/);
  });
});

describe("outside steps (3)", () => {
  test("ops collect until a flush, and stay in memory", async () => {
    const runtime = cpuRuntime();
    const y = runtime.tensor([1, 2]).add(1).mul(3);
    expect(runtime.lastPlan).toBeUndefined();
    await runtime.flush();
    expect(runtime.lastPlan?.statistics.recordedLaunches).toBe(2);
    expect(await read(y)).toEqual([6, 9]);
  });

  test("the next step closes what was collected, and reads its results", async () => {
    const runtime = cpuRuntime();
    const before = runtime.tensor([1, 2]).add(1);
    const [after] = await runtime.step(() => [before.mul(2)]);
    expect(runtime.lastPlan?.statistics.recordedLaunches).toBe(1);
    expect(await read(after as Tensor)).toEqual([4, 6]);
    expect(await read(before)).toEqual([2, 3]);
  });

  test("10,000 launches close a recording, between ops and not inside one", async () => {
    const runtime = cpuRuntime();
    let x = runtime.tensor([0]);
    for (let i = 0; i < 9_999; i++) x = x.add(1);
    // A sum of this many elements takes two launches, with scratch between them.
    const sum = runtime.tensor(new Float32Array(200_000).fill(1)).sum();
    expect(runtime.lastPlan).toBeUndefined();
    x = x.add(1);
    expect(runtime.lastPlan?.statistics.recordedLaunches).toBeGreaterThan(10_000);
    expect([await x.item(), await sum.item()]).toEqual([10_000, 200_000]);
  });

  test("disposed intermediates are not kept", async () => {
    const runtime = cpuRuntime();
    const x = runtime.tensor(new Float32Array(1024).fill(2));
    const middle = x.mul(3);
    const y = middle.add(1);
    middle.dispose();
    expect((await read(y))[0]).toBe(7);
    expect(runtime.lastPlan?.kept).toHaveLength(1);
  });
});

describe("lifetimes (4)", () => {
  test("what a step returns lives on, however it is nested", async () => {
    const runtime = cpuRuntime();
    const result = await runtime.step(() => {
      const of = (x: number): Tensor => runtime.tensor([x]).add(0);
      return { list: [of(1), [of(2)]], map: new Map([["a", { deep: of(3) }]]), text: "kept as is" };
    });
    expect(await read(result.list[0] as Tensor)).toEqual([1]);
    expect(await read((result.list[1] as Tensor[])[0] as Tensor)).toEqual([2]);
    expect(await read(result.map.get("a")?.deep as Tensor)).toEqual([3]);
    expect(result.text).toBe("kept as is");
  });

  test("every other handle is closed, and says what to do", async () => {
    const runtime = cpuRuntime();
    let inner: Tensor | undefined;
    let input: Tensor | undefined;
    await runtime.step(() => {
      input = runtime.tensor([1]);
      inner = input.add(1);
      return 0;
    });
    for (const closed of [inner, input]) {
      expect(() => closed?.add(1)).toThrow(ClosedTensorError);
      expect(() => closed?.reshape([1, 1])).toThrow(/Return it from the step, or mark it keep\(\)/);
      await expect(closed?.toArray()).rejects.toThrow(ClosedTensorError);
    }
  });

  test("keep() makes a tensor outlive its step", async () => {
    const runtime = cpuRuntime();
    let kept: Tensor | undefined;
    await runtime.step(() => {
      kept = runtime.tensor([20]).add(1).keep();
      return kept.mul(0);
    });
    expect(await kept?.item()).toBe(21);
  });

  test("an input that a step returns is the one that it was given", async () => {
    const runtime = cpuRuntime();
    const pick = (index: 0 | 1): Promise<Tensor> =>
      runtime.step(() => [runtime.tensor([10]), runtime.tensor([20])][index] as Tensor);
    expect(await (await pick(0)).item()).toBe(10);
    expect(await (await pick(1)).item()).toBe(20);
  });

  test("dispose() and using end a tensor", async () => {
    const runtime = cpuRuntime();
    const make = (): Promise<Tensor> => runtime.step(() => runtime.tensor([1]).add(1));
    const tensor = await make();
    tensor.dispose();
    tensor.dispose();
    expect(() => tensor.add(1)).toThrow(/used after dispose\(\)/);
    let escaped: Tensor | undefined;
    {
      using scoped = await make();
      escaped = scoped;
    }
    await expect(escaped.item()).rejects.toThrow(ClosedTensorError);
  });

  test("a tensor without history shares memory, and outlives the handle it came from", async () => {
    const runtime = cpuRuntime();
    const y = runtime.tensor([1]).add(1);
    const detached = y.detach();
    const view = y.reshape([1, 1]);
    y.dispose();
    expect([await detached.item(), await view.item()]).toEqual([2, 2]);
  });

  test("tensors that are collected as garbage give back their memory, and are counted", async () => {
    // Replaces garbage collection, which a test cannot trigger.
    let collect = (_storage: unknown): void => {};
    const registered = new Map<unknown, unknown>();
    vi.stubGlobal(
      "FinalizationRegistry",
      class {
        constructor(callback: (storage: unknown) => void) {
          collect = callback;
        }
        register(tensor: unknown, storage: unknown): void {
          registered.set(tensor, storage);
        }
        unregister(tensor: unknown): void {
          registered.delete(tensor);
        }
      },
    );
    const runtime = cpuRuntime();
    vi.unstubAllGlobals();
    const make = (): Promise<Tensor> => runtime.step(() => runtime.tensor([1]).add(1));
    const [lost, held, disposed] = [await make(), await make(), await make()];
    disposed.dispose();
    expect([...registered.keys()]).toEqual([lost, held]);
    expect(runtime.leakedTensors).toBe(0);
    collect(registered.get(lost));
    expect([runtime.leakedTensors, lost.storage.isResident]).toEqual([1, false]);
    expect(await held.item()).toBe(2);
  });
});

describe("reads (5)", () => {
  test("a read inside a step rejects", async () => {
    const runtime = cpuRuntime();
    const ready = runtime.tensor([1]);
    let early: Promise<number> | undefined;
    await runtime.step(() => {
      early = ready.item();
      early.catch(() => {});
      return 0;
    });
    await expect(early).rejects.toThrow(/a read inside a step: nothing is computed before it ends/);
  });

  test("item() wants one element", async () => {
    const runtime = cpuRuntime();
    await expect(runtime.tensor([1, 2]).item()).rejects.toThrow(
      /item\(\) reads a tensor of one element, not of shape \[2\]/,
    );
  });

  test("a read of what is computed already plans nothing", async () => {
    const runtime = cpuRuntime();
    const y = await runtime.step(() => runtime.tensor([1]).add(1));
    const plan = runtime.lastPlan;
    expect(await y.item()).toBe(2);
    expect(runtime.lastPlan).toBe(plan);
  });
});
