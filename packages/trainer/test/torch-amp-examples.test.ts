import { autocast } from "@halfstep/autocast";
import { GradScaler, scaledValue } from "@halfstep/grad-scaler";
import { clipGradNorm, SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  customBackward,
  customForward,
  defineFunction,
  flatten,
  grad,
  type Runtime,
  type Storage,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";
import { expect, test } from "vitest";
import golden from "./golden/torch-amp-examples.json" with { type: "json" };

// The examples of torch's documentation (notes/amp_examples), step by step, with the numbers that torch gives. See the recipe.

/** The recipe's numbers. */
const numbers = (count: number, seed: number, factor = 1): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => ((((i * 7 + seed * 5) % 11) - 5) / 16) * factor);

class Net {
  readonly w1: Variable;
  readonly b1: Variable;
  readonly w2: Variable;
  readonly b2: Variable;

  constructor(runtime: Runtime, seed: number) {
    const make = (shape: readonly number[], place: number): Variable =>
      runtime.variable(
        numbers(
          shape.reduce((n, size) => n * size, 1),
          seed + place,
        ),
        shape,
        { requiresGrad: true, name: `parameter ${seed}.${place}` },
      );
    this.w1 = make([4, 8], 0);
    this.b1 = make([8], 1);
    this.w2 = make([8, 2], 2);
    this.b2 = make([2], 3);
  }

  get parameters(): Variable[] {
    return [this.w1, this.b1, this.w2, this.b2];
  }

  forward(x: Tensor): Tensor {
    return x.matmul(this.w1).add(this.b1).tanh().matmul(this.w2).add(this.b2);
  }
}

const lossOf = (output: Tensor, target: Tensor): Tensor => output.sub(target).square().mean();

/** What an example needs. */
class Context {
  readonly runtime: Runtime = cpuRuntime();
  readonly scaler: GradScaler<Storage, Tensor> = new GradScaler(ampPrimitives(this.runtime), {
    preset: "torch",
    growthInterval: 2,
  });
  readonly precision: "float32" | "bfloat16";

  constructor(precision: "float32" | "bfloat16") {
    this.precision = precision;
  }

  autocast<T>(fn: () => T): T {
    const { precision } = this;
    return precision === "float32" ? fn() : autocast({ dtype: precision }, fn as () => never);
  }

  /** In step 3 the loss overflows. */
  batch(step: number): readonly [x: Tensor, y: Tensor] {
    const y = numbers(12, 50 + step, step === 3 ? 1e38 : 4);
    return [this.runtime.tensor(numbers(24, 20 + step, 4), [6, 4]), this.runtime.tensor(y, [6, 2])];
  }

  sgd(net: Net, lr = 0.125): SGD<Storage> {
    return new SGD(this.runtime.target, flatten(net.parameters), { lr });
  }
}

interface Trained {
  readonly nets: readonly Net[];
  readonly optimizers: readonly SGD<Storage>[];
  /** Records a step and returns the loss. `scale` is that before the step, for those who ask. */
  step(step: number, scale: number): Tensor;
  readonly steps?: number;
}

const exponent = (value: number): number => Math.log2(value);

const examples: Readonly<Record<string, (context: Context) => Trained>> = {
  typical(context) {
    const { scaler } = context;
    const net = new Net(context.runtime, 1);
    const optimizer = context.sgd(net);
    return {
      nets: [net],
      optimizers: [optimizer],
      step(step) {
        const [x, y] = context.batch(step);
        optimizer.zeroGrad();
        const loss = context.autocast(() => lossOf(net.forward(x), y));
        scaler.scale(loss).backward();
        scaler.step(optimizer);
        scaler.update();
        return loss;
      },
    };
  },

  clipping(context) {
    const { scaler } = context;
    const net = new Net(context.runtime, 2);
    const optimizer = context.sgd(net);
    return {
      nets: [net],
      optimizers: [optimizer],
      step(step) {
        const [x, y] = context.batch(step);
        optimizer.zeroGrad();
        const loss = context.autocast(() => lossOf(net.forward(x), y));
        scaler.scale(loss).backward();
        scaler.unscale(optimizer);
        clipGradNorm(optimizer, 0.25);
        scaler.step(optimizer);
        scaler.update();
        return loss;
      },
    };
  },

  accumulation(context) {
    const { scaler } = context;
    const net = new Net(context.runtime, 3);
    const optimizer = context.sgd(net);
    return {
      nets: [net],
      optimizers: [optimizer],
      steps: 12,
      step(step) {
        const [x, y] = context.batch(step);
        const loss = context.autocast(() => lossOf(net.forward(x), y).div(2));
        scaler.scale(loss).backward();
        if ((step + 1) % 2 === 0) {
          scaler.step(optimizer);
          scaler.update();
          optimizer.zeroGrad();
        }
        return loss;
      },
    };
  },

  penalty(context) {
    const { scaler } = context;
    const net = new Net(context.runtime, 4);
    const optimizer = context.sgd(net);
    return {
      nets: [net],
      optimizers: [optimizer],
      step(step, scale) {
        const [x, y] = context.batch(step);
        optimizer.zeroGrad();
        const loss = context.autocast(() => lossOf(net.forward(x), y));
        const scaled = grad(scaledValue(scaler.scale(loss)), net.parameters, {
          createGraph: true,
        }) as readonly Tensor[];
        const gradients = scaled.map((each) => each.mul(1 / scale));
        const penalized = context.autocast(() => {
          const norm = gradients
            .map((each) => each.pow(2).sum())
            .reduce((sum, square) => sum.add(square));
          return loss.add(norm.sqrt());
        });
        scaler.scale(penalized).backward();
        scaler.step(optimizer);
        scaler.update();
        return penalized;
      },
    };
  },

  several(context) {
    const { scaler } = context;
    const nets = [new Net(context.runtime, 5), new Net(context.runtime, 6)] as const;
    const optimizers = [context.sgd(nets[0], 1 / 128), context.sgd(nets[1], 1 / 128)] as const;
    return {
      nets,
      optimizers,
      step(step) {
        const [x, y] = context.batch(step);
        for (const optimizer of optimizers) optimizer.zeroGrad();
        const [loss0, loss1] = context.autocast(() => {
          const [output0, output1] = [nets[0].forward(x), nets[1].forward(x)];
          return [
            lossOf(output0.mul(2).add(output1.mul(3)), y),
            lossOf(output0.mul(3).sub(output1.mul(5)), y),
          ] as const;
        });
        scaler.scale(loss0).backward({ retainGraph: true });
        scaler.scale(loss1).backward();
        // Only those whose gradients are to be looked at or clipped need it.
        scaler.unscale(optimizers[0]);
        scaler.step(optimizers[0]);
        scaler.step(optimizers[1]);
        scaler.update();
        return loss0;
      },
    };
  },

  functions(context) {
    const { scaler } = context;
    const myMM = defineFunction({
      name: "MyMM",
      forward: customForward({}, (saved, a: Tensor, b: Tensor) => {
        saved.save(a, b);
        return a.matmul(b);
      }),
      backward: customBackward(({ saved: [a, b] }, gradient) => [
        gradient.matmul((b as Tensor).transpose(0, 1)),
        (a as Tensor).transpose(0, 1).matmul(gradient),
      ]),
    });
    const myFloat32Func = defineFunction({
      name: "MyFloat32Func",
      forward: customForward({ castInputs: "float32" }, (saved, x: Tensor) => {
        saved.save(x);
        return x.matmul(x.transpose(0, 1));
      }),
      backward: customBackward(({ saved: [x] }, gradient) => [
        gradient.add(gradient.transpose(0, 1)).matmul(x as Tensor),
      ]),
    });
    const net = new Net(context.runtime, 7);
    const optimizer = context.sgd(net);
    return {
      nets: [net],
      optimizers: [optimizer],
      step(step) {
        const [x, y] = context.batch(step);
        optimizer.zeroGrad();
        const loss = context.autocast(() => {
          const hidden = myMM(x, net.w1).add(net.b1).tanh();
          const output = myMM(hidden, net.w2).add(net.b2);
          return lossOf(output, y).add(myFloat32Func(output).mean().div(16));
        });
        scaler.scale(loss).backward();
        scaler.step(optimizer);
        scaler.update();
        return loss;
      },
    };
  },
};

const numbersOf = async (tensors: readonly Tensor[]): Promise<number[]> =>
  (await Promise.all(tensors.map((each) => each.toArray()))).flatMap((each) => [...each]);

/** The largest difference, in units of the largest number. */
const distance = (got: readonly number[], want: readonly number[]): number =>
  Math.max(...want.map((value, i) => Math.abs((got[i] as number) - value))) /
  Math.max(...want.map(Math.abs));

const cases = Object.keys(examples).flatMap((name) =>
  (["float32", "bfloat16"] as const).map((precision) => [name, precision] as const),
);

test("the golden file has every example in both precisions", () => {
  expect(cases.map(([name, precision]) => `${name} ${precision}`)).toEqual(Object.keys(golden));
});

test.each(cases)("%s, %s", async (name, precision) => {
  const want = golden[`${name} ${precision}` as keyof typeof golden];
  const context = new Context(precision);
  const trained = (examples[name] as (context: Context) => Trained)(context);
  const losses: (number | null)[] = [];
  const scales: number[] = [];
  for (let step = 0; step < (trained.steps ?? 8); step++) {
    const scale = await context.scaler.getScale();
    using loss = await context.runtime.step(() => trained.step(step, scale));
    const value = await loss.item();
    losses.push(Number.isFinite(value) ? value : null);
    scales.push(await context.scaler.getScale());
  }
  // Sums in another order move a rounding to bfloat16 by one unit, 2^-8, now and then.
  const tolerance = precision === "float32" ? 2e-6 : 2 ** -8;
  expect(scales.map(exponent)).toEqual(want.scales.map(exponent));
  expect(losses.map((loss) => loss === null)).toEqual(want.losses.map((loss) => loss === null));
  const known = (all: readonly (number | null)[]): number[] => all.map((each) => each ?? 0);
  expect(distance(known(losses), known(want.losses))).toBeLessThan(tolerance);
  const weights = await numbersOf(trained.nets.flatMap(({ parameters }) => parameters));
  expect(distance(weights, want.weights)).toBeLessThan(tolerance);
});
