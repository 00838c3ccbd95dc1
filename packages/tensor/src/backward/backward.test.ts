import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { elementwise, formula } from "@halfstep/kernels";
import { describe, expect, test } from "vitest";
import { gru } from "../functional.js";
import {
  ArgumentError,
  cpuRuntime,
  defineFunction,
  defineOp,
  grad,
  NoSecondDerivativeError,
  noGrad,
  type Operand,
  RecordingError,
  ShapeError,
  type Tensor,
  type Variable,
} from "../index.js";

const read = async (tensor: Tensor | undefined): Promise<number[]> => [
  ...((await tensor?.toArray()) ?? []),
];

describe("grad()", () => {
  test("gives gradients without leaving any", async () => {
    const runtime = cpuRuntime();
    const x = runtime.variable([2, 3], [2], { requiresGrad: true });
    const other = runtime.variable([1], [1], { requiresGrad: true });
    const y = x.square();
    const [dx, dy, none] = grad(y.sum(), [x, y, other]);
    expect([await read(dx), await read(dy), none]).toEqual([[4, 6], [1, 1], undefined]);
    expect(x.grad).toBeUndefined();
  });

  test("a gradient that is a variable's value is a tensor of its own", async () => {
    const runtime = cpuRuntime();
    const [a, b] = [3, 5].map((v) => runtime.variable([v], [], { requiresGrad: true }));
    const [x, y] = [a as Variable, b as Variable];
    const [dx, dy] = await runtime.step(() => {
      const both = grad(x.mul(y), [x, y]);
      y.assign(runtime.tensor([7], []));
      return both;
    });
    expect([await read(dx), await read(dy)]).toEqual([[5], [3]]);
    dx?.dispose();
    expect(await y.item()).toBe(7);
  });

  test("of grad(): second and third derivatives", async () => {
    const runtime = cpuRuntime({ arithmetic: "float64" });
    const x = runtime.variable([2], [1], { requiresGrad: true });
    const [first] = grad(x.square().mul(x.square()).sum(), [x], { createGraph: true });
    const [second] = grad(first?.sum() as Tensor, [x], { createGraph: true });
    const [third] = grad(second?.sum() as Tensor, [x]);
    expect([await read(first), await read(second), await read(third)]).toEqual([[32], [48], [48]]);
  });

  test("a gradient penalty reaches the parameters", async () => {
    const runtime = cpuRuntime({ arithmetic: "float64" });
    const w = runtime.variable([3], [1], { requiresGrad: true });
    const x = runtime.variable([5], [1], { requiresGrad: true });
    // y = w x², dy/dx = 2 w x, its square is 4 w² x², and d/dw of that 8 w x².
    const [dx] = grad(w.mul(x.square()).sum(), [x], { createGraph: true });
    (dx as Tensor).square().sum().backward();
    expect(await read(w.grad)).toEqual([600]);
  });

  test("a fused backward without derivative says which", () => {
    const runtime = cpuRuntime();
    const x = runtime.variable(Float32Array.of(1, 2, 3), [1, 1, 3], { requiresGrad: true });
    const zeros = (...shape: number[]): Tensor => runtime.zeros(shape);
    const weights = { weightIh: zeros(6, 3), weightHh: zeros(6, 2) };
    const [dx] = grad(gru(x, weights).output.sum(), [x], { createGraph: true });
    const second = (): unknown => grad((dx as Tensor).sum(), [x], { retainGraph: true });
    expect(second).toThrow(NoSecondDerivativeError);
    expect(second).toThrow(/gru has no second derivative/);
  });
});

describe("backward()", () => {
  test("needs something to differentiate", () => {
    const runtime = cpuRuntime();
    expect(() => runtime.tensor([1]).backward()).toThrow(RecordingError);
    const w = runtime.variable([1], [1], { requiresGrad: true });
    const blind = noGrad(() => w.mul(2));
    expect(() => blind.backward()).toThrow(/was it made under noGrad\?/);
  });

  test("needs a gradient for more than one element", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1, 2], [2], { requiresGrad: true });
    const y = w.mul(3);
    expect(() => y.backward()).toThrow(ShapeError);
    y.backward({ gradient: runtime.tensor([1, 10]) });
    expect(await read(w.grad)).toEqual([3, 30]);
  });

  test("refuses a gradient of another shape, which would broadcast or be read as another", () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1, 2, 3, 4], [2, 2], { requiresGrad: true });
    for (const y of [w.mul(w), w.matmul(w), w.sigmoid()])
      for (const shape of [[2], [4], [1, 2, 2]]) {
        const gradient = runtime.zeros(shape);
        const message = `needs a gradient of that shape, not [${shape}]`;
        expect(() => y.backward({ gradient })).toThrow(message);
        expect(() => grad(y, [w], { gradient })).toThrow(message);
      }
    expect(w.grad).toBeUndefined();
  });

  test("noGrad refuses a callback that goes on after it", () => {
    const later: () => unknown = async () => 1;
    expect(() => noGrad(later)).toThrow(
      "noGrad() takes a synchronous callback, and this one returned a promise",
    );
    const generators: (() => unknown)[] = [function* () {}, async function* () {}];
    for (const generator of generators)
      expect(() => noGrad(generator)).toThrow(
        new TypeError(
          "noGrad() takes a synchronous callback, and this one returned a generator: run it inside",
        ),
      );
    const values = [1].values();
    expect(noGrad(() => values)).toBe(values);
  });

  test("adds over paths, and over shared casts", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([2], [1], { requiresGrad: true });
    const half = w.to("float16");
    half.mul(w.to("float16")).add(half.to("float32").mul(w)).sum().backward();
    expect(await read(w.grad)).toEqual([8]);
  });

  test("leaves a loss that holds nothing but itself", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const runtime = cpuRuntime();
    const w = runtime.variable([2], [1], { requiresGrad: true });
    const refs: WeakRef<Tensor>[] = [];
    const losses: Tensor[] = [];
    const several = 20;
    for (let i = 0; i < several; i++)
      losses.push(
        await runtime.step(() => {
          const product = runtime.tensor([i]).mul(w);
          refs.push(new WeakRef(product));
          const loss = product.square().sum();
          loss.backward();
          return loss;
        }),
      );
    const collected = (): number => refs.filter((ref) => ref.deref() === undefined).length;
    for (let tries = 0; tries < 200 && collected() === 0; tries++) {
      // deref() keeps what it finds alive until the end of the turn.
      await new Promise((resolve) => setTimeout(resolve, 5));
      collect();
    }
    // The engine may keep the latest ones for a while, but not all.
    expect(collected()).toBeGreaterThan(0);
    expect(await losses[3]?.item()).toBe(36);
  });

  test("says how to truncate backpropagation through time", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([0.5], [1], { requiresGrad: true });
    const steps = async (carry: (state: Tensor) => Tensor): Promise<number> => {
      let state: Tensor = runtime.zeros([1]);
      for (let step = 0; step < 3; step++)
        state = await runtime.step(() => {
          const next = carry(state).mul(w).add(1);
          next.sum().backward();
          return next;
        });
      return state.item();
    };
    await expect(steps((state) => state)).rejects.toThrow(
      "pass { retainGraph: true } to the first, or detach() what the second should not",
    );
    const late = await runtime.step(() => w.mul(3).square());
    expect(() => late.sum().backward()).toThrow(/is cut off by state\.detach\(\)$/);
    expect(await steps((state) => state.detach())).toBe(1.75);
  });

  test("stops at detached tensors, and at ops without a gradient", async () => {
    const runtime = cpuRuntime();
    const w = runtime.variable([3], [1], { requiresGrad: true });
    w.mul(w.detach()).sum().backward();
    expect(await read(w.grad)).toEqual([3]);
    const frozen = noGrad(() => w.mul(2));
    expect([frozen.requiresGrad, w.detach().requiresGrad]).toEqual([false, false]);
  });

  const identity = formula("identity", (x) => x);

  /** A function of tensors whose backward is this one, as an op and as a function. */
  const made = {
    defineOp(backward: unknown) {
      const op = defineOp<null>({
        name: "mine",
        castPolicy: "none",
        shape: ([x]) => (x ? [x] : []),
        forward: ({ target, inputs: [x], outputs: [y] }) =>
          target.launch(elementwise(identity, [x as Operand], y as Operand)),
        backward: backward as () => readonly Tensor[],
      });
      return (...inputs: Tensor[]) => op.apply(inputs, null);
    },
    defineFunction: (backward: unknown) =>
      defineFunction({
        name: "mine",
        forward: (_, ...inputs: Tensor[]) => (inputs[0] as Tensor).mul(1),
        backward: () => (backward as () => readonly Tensor[])(),
      }),
  };

  describe.each(["defineOp", "defineFunction"] as const)("of %s is refused", (way) => {
    const runtime = cpuRuntime();
    const w = runtime.variable([1, 2, 3, 4, 5, 6], [2, 3], { requiresGrad: true });
    const frozen = runtime.variable([1], [1]);
    const place = way === "defineOp" ? "input" : "argument";
    const g = runtime.zeros([2, 3]);
    test.each<[string, unknown, new (message: string) => Error, string]>([
      ["transposed", [runtime.zeros([3, 2]), undefined], ShapeError, "a gradient of shape [3,2]"],
      ["flat", [runtime.zeros([6]), undefined], ShapeError, "a gradient of shape [6]"],
      ["too small", [runtime.zeros([3]), undefined], ShapeError, "a gradient of shape [3]"],
      ["one too few", [g], ShapeError, `1 gradient for 2 ${place}s`],
      ["one too many", [g, g, g], ShapeError, `3 gradients for 2 ${place}s`],
      ["no list", g, ArgumentError, "a tensor of shape [2,3]: return a list"],
      ["nothing", undefined, ArgumentError, "undefined: return a list"],
      ["numbers", [1, 2], ArgumentError, `1 for ${place} 0: return a tensor`],
    ])("a gradient that is %s", (_, given, Refusal, what) => {
      const y = made[way](() => given)(w, frozen);
      const call = () => y.backward({ gradient: w, retainGraph: true });
      expect(call).toThrow(Refusal);
      expect(call).toThrow(`mine: backward gave ${what}`);
    });

    test("not what an input gets that needs none", () => {
      made[way](() => [g, runtime.zeros([7])])(w, frozen).backward({ gradient: w });
      expect(w.grad?.shape).toEqual([2, 3]);
    });
  });
});
