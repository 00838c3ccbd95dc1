import { autocast, currentRegion } from "@halfstep/autocast";
import { describe, expect, test } from "vitest";
import {
  cpuRuntime,
  customBackward,
  customForward,
  defineFunction,
  grad,
  noGrad,
  RecordingError,
  ShapeError,
  type Tensor,
} from "../index.js";

const runtime = cpuRuntime();
const variable = (values: readonly number[]) =>
  runtime.variable(Float32Array.from(values), [values.length], { requiresGrad: true });

/** x³ with twice its true gradient, which no other rule computes. */
const cube = defineFunction({
  name: "cube",
  forward(context, x: Tensor, times: number) {
    const square = x.square();
    context.save(square, x);
    return square.mul(x).mul(times);
  },
  backward(context, gradient) {
    const [square] = context.saved as [Tensor];
    return [gradient.mul(square.mul(6)), undefined];
  },
});

describe("defineFunction", () => {
  test("takes the gradient that it is given", async () => {
    const x = variable([1, 2, -3]);
    const y = cube(x, 1);
    expect(Array.from(await y.toArray())).toEqual([1, 8, -27]);
    y.sum().backward();
    expect(Array.from((await x.grad?.toArray()) ?? [])).toEqual([6, 24, 54]);
  });

  test("saves the version that the forward pass saw", async () => {
    const x = variable([2]);
    const identity = defineFunction({
      name: "keep",
      forward(context, input: Tensor) {
        context.save(input);
        return input;
      },
      backward: (context, gradient) => [gradient.mul(context.saved[0] as Tensor)],
    });
    const result = await runtime.step(() => {
      const y = identity(x);
      noGrad(() => x.assign(x.mul(10)));
      y.sum().backward();
      return x.grad?.add(0);
    });
    expect(Array.from((await result?.toArray()) ?? [])).toEqual([2]);
  });

  test("leaves arguments and results without history where nothing needs one", async () => {
    const x = runtime.tensor([3]);
    expect(cube(x, 1).requiresGrad).toBe(false);
    expect(noGrad(() => cube(variable([3]), 1)).requiresGrad).toBe(false);
  });

  test("is differentiable again in the gradient that comes in", async () => {
    const x = variable([2]);
    const scale = variable([5]);
    const [first] = grad(cube(x, 1).mul(scale).sum(), [x], { createGraph: true });
    // Saved tensors have no history, as in torch.
    const [second] = grad(first?.sum() as Tensor, [scale]);
    expect(Array.from((await second?.toArray()) ?? [])).toEqual([24]);
  });

  test("refuses a call without tensors, and gradients of another number", () => {
    const broken = defineFunction({
      name: "broken",
      forward: (_, x: Tensor, y: number) => x.mul(y),
      backward: (_, gradient) => [gradient],
    });
    expect(() =>
      broken(variable([1]), 2)
        .sum()
        .backward(),
    ).toThrow(ShapeError);
    expect(() =>
      broken(variable([1]), 2)
        .sum()
        .backward(),
    ).toThrow("broken: backward gave 1 gradient for 2 arguments");
    expect(() => (broken as unknown as (x: number) => void)(2)).toThrow(RecordingError);
  });
});

describe("under autocast", () => {
  /** The dtype of the argument and the region, in a forward and in a backward pass. */
  function observe(castInputs?: "float32" | "float16") {
    const seen: string[] = [];
    const note = (pass: string, dtype: string): void => {
      const region = currentRegion();
      seen.push(`${pass} ${dtype} ${region?.enabled ? region.dtype : "off"}`);
    };
    const fn = defineFunction({
      name: "observed",
      forward: customForward(
        castInputs ? { castInputs } : {},
        (_, x: Tensor, more: { y: Tensor }) => {
          note("forward", `${x.dtype}, ${more.y.dtype}`);
          return x.mul(more.y);
        },
      ),
      backward: customBackward((_, gradient) => {
        note("backward", gradient.dtype);
        return [gradient, undefined];
      }),
    });
    return { fn, seen };
  }

  test("castInputs casts the tensors, in containers too, and switches autocast off", () => {
    const { fn, seen } = observe("float16");
    const x = variable([1]);
    const y = autocast({ dtype: "bfloat16" }, () => fn(x, { y: runtime.tensor([2]) }));
    y.sum().backward();
    expect([...seen, y.dtype]).toEqual([
      "forward float16, float16 off",
      "backward float16 off",
      "float16",
    ]);
    expect(x.grad?.dtype).toBe("float32");
  });

  test("without castInputs both passes run in the region of the forward pass", () => {
    const { fn, seen } = observe();
    const y = autocast({ dtype: "bfloat16" }, () => fn(variable([1]), { y: runtime.tensor([2]) }));
    y.sum().backward();
    expect(seen).toEqual(["forward float32, float32 bfloat16", "backward float32 bfloat16"]);
  });

  test("outside of a region castInputs does nothing", () => {
    const { fn, seen } = observe("float16");
    fn(variable([1]), { y: runtime.tensor([2]) })
      .sum()
      .backward();
    autocast({ enabled: false }, () => fn(variable([1]), { y: runtime.tensor([2]) }));
    expect(seen).toEqual([
      "forward float32, float32 off",
      "backward float32 off",
      "forward float32, float32 off",
    ]);
  });
});
