import { DTypeError } from "@halfstep/autocast";
import { expect, test } from "vitest";
import {
  type ForwardCase,
  forwardMismatches,
  places,
  scattered,
} from "../../test/forward-check.js";
import { cpuRuntime, ShapeError, type Tensor } from "../index.js";
import { type Conv2dOptions, conv2d } from "./index.js";

type Four = readonly [number, number, number, number];

const pairOf = (value: number | readonly [number, number]): readonly [number, number] =>
  typeof value === "number" ? [value, value] : value;

function convolutionCase(input: Four, weight: Four, options: Conv2dOptions = {}): ForwardCase {
  const [batch, height, width, channels] = input;
  const [kernelHeight, kernelWidth, , outChannels] = weight;
  const [strideY, strideX] = pairOf(options.stride ?? 1);
  const [padY, padX] = pairOf(options.padding ?? 0);
  const [stepY, stepX] = pairOf(options.dilation ?? 1);
  const outHeight = Math.floor((height + 2 * padY - stepY * (kernelHeight - 1) - 1) / strideY) + 1;
  const outWidth = Math.floor((width + 2 * padX - stepX * (kernelWidth - 1) - 1) / strideX) + 1;

  function convolved(x: readonly number[], w: readonly number[]): number[] {
    const y: number[] = [];
    for (let n = 0; n < batch; n++)
      for (let oy = 0; oy < outHeight; oy++)
        for (let ox = 0; ox < outWidth; ox++)
          for (let o = 0; o < outChannels; o++) {
            let sum = 0;
            for (let ky = 0; ky < kernelHeight; ky++)
              for (let kx = 0; kx < kernelWidth; kx++) {
                const iy = oy * strideY - padY + ky * stepY;
                const ix = ox * strideX - padX + kx * stepX;
                if (iy < 0 || iy >= height || ix < 0 || ix >= width) continue;
                for (let c = 0; c < channels; c++)
                  sum +=
                    (x[((n * height + iy) * width + ix) * channels + c] as number) *
                    (w[((ky * kernelWidth + kx) * channels + c) * outChannels + o] as number);
              }
            y.push(sum);
          }
    return y;
  }

  return {
    name: `[${input}] by [${weight}], ${JSON.stringify(options)}`,
    inputs: [scattered(input, 1), scattered(weight, 2)],
    apply: ([x, w]) => conv2d(x as Tensor, w as Tensor, undefined, options),
    expected: ([x, w]) => convolved(x as number[], w as number[]),
    shape: [batch, outHeight, outWidth, outChannels],
  };
}

const plain = convolutionCase([1, 3, 3, 2], [2, 2, 2, 4]);

const cases: readonly ForwardCase[] = [
  convolutionCase([2, 7, 6, 1], [3, 3, 1, 16], { padding: 1 }),
  convolutionCase([1, 5, 5, 16], [3, 3, 16, 32], { padding: 1 }),
  convolutionCase([2, 4, 5, 3], [1, 1, 3, 5]),
  convolutionCase([1, 8, 7, 3], [3, 2, 3, 6], { stride: 2, padding: [1, 0] }),
  convolutionCase([1, 6, 9, 2], [2, 3, 2, 3], { stride: [1, 3], padding: [0, 2] }),
  convolutionCase([1, 7, 7, 2], [3, 3, 2, 2], { dilation: 2, padding: 2 }),
  {
    ...plain,
    name: "bias",
    inputs: [...plain.inputs, scattered([4], 3)],
    apply: ([x, w, bias]) => conv2d(x as Tensor, w as Tensor, bias),
    expected: ([x, w, bias]) =>
      plain
        .expected([x as number[], w as number[]])
        .map((value, i) => value + (bias?.[i % 4] as number)),
  },
];

test.each(places)("convolutions equal their sums: %s, %s", async (_, dtype, open) => {
  expect(await forwardMismatches(await open(), dtype, cases)).toEqual([]);
});

test("shapes and dtypes that do not fit are refused", () => {
  const runtime = cpuRuntime();
  const x = runtime.zeros([1, 4, 4, 3]);
  const refused: readonly [() => unknown, string][] = [
    [
      () => conv2d(runtime.zeros([4, 4, 3]), runtime.zeros([2, 2, 3, 1])),
      "conv2d needs an input [batch, height, width, channels] and a weight [height, width, in, out], not [4,4,3] and [2,2,3,1]",
    ],
    [
      () => conv2d(x, runtime.zeros([2, 2, 4, 1])),
      "conv2d: the input has 3 channels, the weight takes 4",
    ],
    [
      () => conv2d(x, runtime.zeros([5, 2, 3, 1])),
      "conv2d: a window [5,2] of dilation [1,1] does not fit into 4×4 with padding [0,0]",
    ],
  ];
  for (const [call, message] of refused) {
    expect(call).toThrow(ShapeError);
    expect(call).toThrow(message);
  }
  expect(() => conv2d(x, runtime.zeros([2, 2, 3, 1]), undefined, { stride: 0 })).toThrow(
    "conv2d: stride [0,0] must be whole numbers, at least 1",
  );
  const half = runtime.zeros([2, 2, 3, 1], { dtype: "float16" });
  expect(() => conv2d(x, half)).toThrow(DTypeError);
  expect(() => conv2d(x, half)).toThrow("conv2d: operands are float32 and float16");
});
