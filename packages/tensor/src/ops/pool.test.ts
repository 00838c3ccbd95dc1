import { expect, test } from "vitest";
import {
  type FloatDType,
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, grad, type Runtime, ShapeError, type Tensor } from "../index.js";
import { avgPool2d, maxPool2d, type PoolOptions } from "./index.js";

type Four = readonly [number, number, number, number];

const pairOf = (value: number | readonly [number, number]): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

/** The result of a window over padded images, from the elements inside the image and the window's size. */
type Pooling = (inside: readonly number[], size: number) => number;

function poolCases(input: Four, options: PoolOptions): readonly ForwardCase[] {
  const [batch, height, width, channels] = input;
  const [windowY, windowX] = pairOf(options.window);
  const [strideY, strideX] = pairOf(options.stride ?? options.window);
  const [padY, padX] = pairOf(options.padding ?? 0);
  const outHeight = Math.floor((height + 2 * padY - windowY) / strideY) + 1;
  const outWidth = Math.floor((width + 2 * padX - windowX) / strideX) + 1;

  function pooled(x: readonly number[], pooling: Pooling): number[] {
    const y: number[] = [];
    for (let n = 0; n < batch; n++)
      for (let oy = 0; oy < outHeight; oy++)
        for (let ox = 0; ox < outWidth; ox++)
          for (let c = 0; c < channels; c++) {
            const inside: number[] = [];
            for (let ky = 0; ky < windowY; ky++)
              for (let kx = 0; kx < windowX; kx++) {
                const iy = oy * strideY - padY + ky;
                const ix = ox * strideX - padX + kx;
                if (iy >= 0 && iy < height && ix >= 0 && ix < width)
                  inside.push(x[((n * height + iy) * width + ix) * channels + c] as number);
              }
            y.push(pooling(inside, windowY * windowX));
          }
    return y;
  }

  const common = {
    inputs: [scattered(input)],
    shape: [batch, outHeight, outWidth, channels],
  };
  const name = `[${input}], ${JSON.stringify(options)}`;
  return [
    {
      ...common,
      name: `maxPool2d of ${name}`,
      apply: ([x]) => maxPool2d(x as Tensor, options),
      expected: ([x]) => pooled(x as number[], (inside) => Math.max(...inside)),
    },
    {
      ...common,
      name: `avgPool2d of ${name}`,
      apply: ([x]) => avgPool2d(x as Tensor, options),
      expected: ([x]) =>
        pooled(x as number[], (inside, size) => inside.reduce((a, b) => a + b, 0) / size),
    },
  ];
}

const cases: readonly ForwardCase[] = [
  ...poolCases([2, 6, 4, 16], { window: 2 }),
  ...poolCases([1, 7, 7, 3], { window: 2 }),
  ...poolCases([1, 5, 4, 2], { window: 3, stride: 1, padding: 1 }),
  ...poolCases([2, 7, 8, 1], { window: [3, 2], stride: [2, 1], padding: [1, 0] }),
];

test.each(places)("windows are pooled: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test.each([
  ["maxPool2d", maxPool2d],
  ["avgPool2d", avgPool2d],
])("%s refuses inputs that are no images, and windows that do not fit", (name, pool) => {
  const runtime = cpuRuntime();
  const refused: readonly [() => unknown, string][] = [
    [
      () => pool(runtime.zeros([4, 4, 1]), { window: 2 }),
      `${name} needs an input [batch, height, width, channels], not [4,4,1]`,
    ],
    [
      () => pool(runtime.zeros([1, 2, 4, 1]), { window: 3 }),
      `${name}: a window [3,3] does not fit into 2×4 with padding [0,0]`,
    ],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
});

/** The gradients of a gradient through maxima, with equal numbers in windows. */
async function secondGradients(runtime: Runtime, dtype: FloatDType): Promise<number[][]> {
  const found: number[][] = [];
  for (const [shape, options] of [
    [[2, 6, 4, 8], { window: 2 }],
    [[1, 7, 5, 3], { window: 3, stride: 2, padding: 1 }],
    [[1, 5, 6, 4], { window: [3, 2], stride: [1, 2], padding: [1, 0] }],
  ] as const) {
    const size = shape.reduce<number>((a, b) => a * b, 1);
    const values = Float32Array.from({ length: size }, (_, i) => ((i * 7) % 5) / 2 - 1);
    const x = runtime.tensor(values, shape, { dtype, requiresGrad: true });
    const [dx] = grad(maxPool2d(x, options).pow(3).sum(), [x], { createGraph: true });
    const [second] = grad((dx as Tensor).square().sum(), [x], { createGraph: true });
    const [third] = grad((second as Tensor).sum(), [x]);
    for (const each of [second, third]) found.push([...(await (each as Tensor).toArray())]);
  }
  return found;
}

const exact = await secondGradients(cpuRuntime({ arithmetic: "float64" }), "float32");

test("maxima can be differentiated again, as in torch", () => {
  const moments = exact.map((values) => values.reduce((sum, value, i) => sum + value * i, 0));
  // torch 2.14, float64.
  expect(moments).toEqual([390834, 1219212, 18409.5, 75681, 209218.5, 652563]);
});

test.each(places)("maxima can be differentiated again: %s, %s", async (_, dtype, open) => {
  const expected = exact.flat();
  const largest = Math.max(...expected.map(Math.abs));
  const tolerance = largest * { float32: 2 ** -20, float16: 2 ** -8, bfloat16: 2 ** -5 }[dtype];
  const found = (await secondGradients(await open(), dtype)).flat();
  expect(found.findIndex((v, i) => !(Math.abs(v - (expected[i] as number)) <= tolerance))).toBe(-1);
});
