import { DTypeError } from "@halfstep/autocast";
import { describe, expect, test } from "vitest";
import { conv2d, cpuRuntime, crossEntropy, linear, ShapeError, type Tensor } from "../src/index.js";

// Rule 17 of the semantics of recordings, as far as it needs no GPU.

/** The error of a call, and whether the first frame outside this package's source is in this file. */
function thrown(call: () => unknown): { error: unknown; caller: string | undefined } {
  try {
    call();
  } catch (error) {
    const frames = (error as Error).stack?.split("\n").filter((line) => /^\s+at .*\.ts/.test(line));
    return { error, caller: frames?.find((line) => !line.includes("/tensor/src/")) };
  }
  return { error: undefined, caller: undefined };
}

describe("mistakes throw at the call", () => {
  const runtime = cpuRuntime();
  const zeros = (...shape: number[]): Tensor => runtime.zeros(shape);
  const half = (...shape: number[]): Tensor => runtime.zeros(shape, { dtype: "float16" });

  test.each<[string, () => unknown, typeof ShapeError | typeof DTypeError, RegExp]>([
    [
      "matmul",
      () => zeros(2, 3).matmul(zeros(4, 5)),
      ShapeError,
      /matmul: lhs \[2,3\], rhs \[4,5\]: inner sizes 3 and 4 differ/,
    ],
    [
      "linear",
      () => linear(zeros(2, 3), zeros(4, 5)),
      ShapeError,
      /rhs \[4,5\] transposed: inner sizes 3 and 5 differ/,
    ],
    [
      "add",
      () => zeros(2, 3).add(zeros(2)),
      ShapeError,
      /add: shapes \[2,3\] and \[2\] do not broadcast: sizes 3 and 2/,
    ],
    ["reshape", () => zeros(2, 3).reshape([4, -1]), ShapeError, /which do not fill \[4,-1\]/],
    ["sum", () => zeros(2, 3).sum(2), ShapeError, /sum: axis 2 is none of the dimensions/],
    ["permute", () => zeros(2, 3).permute([0, 0]), ShapeError, /\[0,0\] is no order/],
    [
      "conv2d",
      () => conv2d(zeros(1, 4, 4, 3), zeros(3, 3, 2, 8)),
      ShapeError,
      /conv2d: the input has 3 channels, the weight takes 2/,
    ],
    ["data", () => runtime.tensor([1, 2, 3], [2, 2]), ShapeError, /needs 4 elements.*has 3/],
    ["variable", () => runtime.variable([1], [2]), ShapeError, /needs 2 elements.*has 1/],
    [
      "assign",
      () => runtime.variable([1], [1], { name: "bias" }).assign(zeros(3)),
      ShapeError,
      /assign: bias has shape \[1\], the value has \[3\]/,
    ],
    [
      "matmul of unlike dtypes",
      () => zeros(2, 2).matmul(half(2, 2)),
      DTypeError,
      /matmul: lhs is float32, rhs is float16; cast one with to\(\)/,
    ],
    [
      "labels",
      () => crossEntropy(zeros(2, 3), zeros(2)),
      DTypeError,
      /labels are float32; make them from a Uint32Array/,
    ],
    [
      "unless",
      () => runtime.variable([1], [1]).assign(zeros(1), { unless: half(1) }),
      DTypeError,
      /unless must be one float32, not float16/,
    ],
  ])("%s", (_, call, type, message) => {
    const { error, caller } = thrown(call);
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toMatch(message);
    expect(caller).toMatch(/recordings-errors\.test\.ts/);
  });
});

describe("a step that throws has not happened", () => {
  test("variables, gradients and what was computed before stay; the runtime goes on", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1, 2], [2], { requiresGrad: true });
    const present = runtime.variable([1], [1], { requiresGrad: true });
    await runtime.step(() => {
      present.mul(4).sum().backward();
      return 0;
    });
    const before = w.mul(10);
    const version = w.version;
    await expect(
      runtime.step(() => {
        w.square().sum().backward();
        present.zeroGrad();
        w.assign(w.mul(3));
        w.assign(w.mul(3));
        return w.reshape([3]);
      }),
    ).rejects.toThrow(ShapeError);
    expect(w.version).toBe(version);
    expect([w.grad, present.grad !== undefined]).toEqual([undefined, true]);
    expect([...(await w.toArray())]).toEqual([1, 2]);
    expect([...(await before.toArray())]).toEqual([10, 20]);
    expect(await present.grad?.item()).toBe(4);
    const after = await runtime.step(() => w.mul(2));
    expect([...(await after.toArray())]).toEqual([2, 4]);
  });

  test("tensors of a dropped step are closed", async () => {
    const runtime = cpuRuntime();
    let kept: Tensor | undefined;
    await expect(
      runtime.step(() => {
        kept = runtime.tensor([1]).add(1).keep();
        throw new Error("stop");
      }),
    ).rejects.toThrow("stop");
    expect(() => kept?.add(1)).toThrow(/used after the step that made it/);
  });

  test("onRollback restores state of the host, latest first, and only then", async () => {
    const runtime = cpuRuntime();
    const undone: number[] = [];
    const count = (n: number): void => runtime.target.onRollback(() => undone.push(n));
    const step = (fails: boolean): Promise<number> =>
      runtime.step(() => {
        count(1);
        count(2);
        if (fails) throw new Error("stop");
        return 0;
      });
    await step(false);
    expect(undone).toEqual([]);
    await expect(step(true)).rejects.toThrow("stop");
    expect(undone).toEqual([2, 1]);
    count(3);
    await expect(step(true)).rejects.toThrow("stop");
    expect(undone).toEqual([2, 1, 2, 1]);
  });

  test("a launch that the runner refuses drops its step too", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1], [1]);
    const broken = {
      name: "broken",
      variant: "",
      bindings: [{ name: "x", access: "readwrite" as const }],
      scalars: [],
      program: () => ({ code: "", workgroups: () => [1, 1, 1] as const }),
      reference() {
        throw new RangeError("broken: no");
      },
    };
    const failing = runtime.step(() => {
      w.assign(w.add(1));
      runtime.target.launch({ kernel: broken, bindings: [w.operand()], scalars: {} });
      return 0;
    });
    await expect(failing).rejects.toThrow("broken: no");
    await expect(runtime.step(() => 5)).resolves.toBe(5);
  });

  test("a read asked for inside a dropped step reads the state before it", async () => {
    const runtime = cpuRuntime();
    const buffer = runtime.target.allocateResident(16);
    const words = { buffer, offset: 0, length: 1, dtype: "float32" } as const;
    runtime.target.write(words, [7]);
    let asked: Promise<ArrayLike<number>> | undefined;
    await expect(
      runtime.step(() => {
        asked = runtime.target.read(words);
        throw new Error("stop");
      }),
    ).rejects.toThrow("stop");
    expect((await asked)?.[0]).toBe(7);
  });
});
