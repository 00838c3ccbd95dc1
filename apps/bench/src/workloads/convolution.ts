import { conv2d } from "@halfstep/tensor";
import { operation } from "../lanes/halfstep.js";
import { jaxArray, jaxOperation } from "../lanes/jax.js";
import { onnxOperation } from "../lanes/onnx.js";
import { tfjsOperation } from "../lanes/tfjs.js";
import { channelsFirst, filtersFirst, randomNumbers } from "../samples.js";
import { bytesOf, type Case, usualTolerance, type Workload } from "../workload.js";

interface Layer {
  readonly batch: number;
  /** Height and width. */
  readonly size: number;
  readonly inChannels: number;
  readonly outChannels: number;
}

/** 3×3 with a border of zeros. Channels last here and in tfjs, first in jax-js and onnxruntime. */
function convolution(
  name: string,
  layer: Layer,
  chosen: Pick<Case, "isQuick" | "isForHardware">,
): Case {
  const { batch, size, inChannels, outChannels } = layer;
  const pixels = batch * size * size;
  const input = () => randomNumbers(pixels * inChannels);
  const filter = () => randomNumbers(9 * inChannels * outChannels, 0.1, 99);
  const inputFirst = () => channelsFirst(input(), batch, size * size, inChannels);
  const filterFirst = () => filtersFirst(filter(), 9, inChannels, outChannels);
  const first = {
    input: [batch, inChannels, size, size],
    filter: [outChannels, inChannels, 3, 3],
    output: [batch, outChannels, size, size],
  };
  let operands: readonly [Float32Array, Float32Array] | undefined;
  return {
    name,
    ...chosen,
    precisions: ["float32", "float16", "bfloat16"],
    cost: (precision) => ({
      operations: 2 * pixels * 9 * inChannels * outChannels,
      bytes:
        (pixels * (inChannels + outChannels) + 9 * inChannels * outChannels) * bytesOf(precision),
    }),
    tolerance: usualTolerance,
    expected(index) {
      operands ??= [input(), filter()];
      const [x, w] = operands;
      const channel = index % outChannels;
      const pixel = Math.floor(index / outChannels);
      const [column, row] = [pixel % size, Math.floor(pixel / size) % size];
      let sum = 0;
      for (let tap = 0; tap < 9; tap++) {
        const [dy, dx] = [Math.floor(tap / 3) - 1, (tap % 3) - 1];
        if (row + dy < 0 || row + dy >= size || column + dx < 0 || column + dx >= size) continue;
        const from = (pixel + dy * size + dx) * inChannels;
        for (let c = 0; c < inChannels; c++)
          sum +=
            (x[from + c] as number) * (w[(tap * inChannels + c) * outChannels + channel] as number);
      }
      return sum;
    },
    on: {
      async halfstep(library, dtype) {
        const place = await library.open();
        const x = place.runtime.tensor(input(), [batch, size, size, inChannels], { dtype });
        const w = place.runtime.tensor(filter(), [3, 3, inChannels, outChannels], { dtype });
        return operation(place, () => conv2d(x, w, undefined, { padding: 1 }));
      },
      async jax(library, precision) {
        const x = jaxArray(library, inputFirst(), first.input, precision);
        const w = jaxArray(library, filterFirst(), first.filter, precision);
        const run = library.jit((a: typeof x, b: typeof w) =>
          library.lax.convGeneralDilated(a, b, [1, 1], "SAME"),
        );
        return jaxOperation(library, () => run(x.ref, w.ref), [0, 2, 3, 1]);
      },
      async tfjs(library) {
        const { tf } = library;
        const x = tf.tensor(input(), [batch, size, size, inChannels]);
        const w = tf.tensor(filter(), [3, 3, inChannels, outChannels]);
        return tfjsOperation(library, () => tf.conv2d(x, w, 1, "same"));
      },
      async onnx(library, precision) {
        const prepared = await onnxOperation(
          library,
          {
            op: "Conv",
            attributes: { kernel_shape: [3, 3], pads: [1, 1, 1, 1], strides: [1, 1] },
            inputs: { x: first.input, w: first.filter },
            output: first.output,
          },
          { x: inputFirst(), w: filterFirst() },
          precision,
        );
        return {
          ...prepared,
          // Back to channels last: the pixels become channels.
          result: async () =>
            channelsFirst(await prepared.result(), batch, outChannels, size * size),
        };
      },
    },
  };
}

export const convolutions: Workload = {
  name: "conv",
  title: "Convolution 3×3, forward",
  level: "operation",
  cases: [
    convolution(
      "first layer, 3→16 of 32²×128",
      { batch: 128, size: 32, inChannels: 3, outChannels: 16 },
      { isQuick: false },
    ),
    convolution(
      "middle layer, 32→32 of 56²×8",
      { batch: 8, size: 56, inChannels: 32, outChannels: 32 },
      { isQuick: true },
    ),
    convolution(
      "late layer, 64→64 of 8²×128",
      { batch: 128, size: 8, inChannels: 64, outChannels: 64 },
      { isQuick: false },
    ),
    // Two layers of a ResNet-50 for ImageNet.
    convolution(
      "ResNet, 64→64 of 56²×64",
      { batch: 64, size: 56, inChannels: 64, outChannels: 64 },
      { isQuick: true, isForHardware: true },
    ),
    convolution(
      "ResNet, 256→256 of 14²×64",
      { batch: 64, size: 14, inChannels: 256, outChannels: 256 },
      { isQuick: false, isForHardware: true },
    ),
  ],
};
