// Weights in a file beside the model, far into it too.
import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { recipeOf } from "@halfstep/autocast";
import { Generator, Linear, Sequential } from "@halfstep/nn";
import { InferenceSession, Tensor as OrtTensor } from "@halfstep/onnxruntime";
import { noGrad, type Tensor } from "@halfstep/tensor";
import { afterAll, expect, test } from "vitest";
import { OnnxError, toOnnx } from "../src/index.js";
import { openOnnx } from "../src/node.js";
import { runtime } from "./cases.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-external-"));
afterAll(() => rmSync(folder, { recursive: true }));

const generator = new Generator(3);
const model = new Sequential(
  new Linear(runtime, 40, 30, { generator }),
  new Linear(runtime, 30, 50, { generator }),
);
const given = Float32Array.from({ length: 80 }, (_, i) => Math.sin(i));
const example = [runtime.zeros([1, 40])];

test.each([
  ["its beginning", "float32", 0],
  ["2 GiB", "float32", 2 ** 31 - 4096],
  ["4 GiB", "float32", 2 ** 32 + 1],
  ["4 GiB", "O1", 2 ** 32 + 4096],
] as const)("weights from %s on, in %s, are those that are read", async (_, precision, offset) => {
  const location = `${precision}-${offset}.data`;
  const path = join(folder, `${precision}-${offset}.onnx`);
  const file = openSync(join(folder, location), "w");
  let end = offset as number;
  const lengths: number[] = [];
  const bytes = await toOnnx(model, example, {
    recipe: recipeOf(precision),
    float32Outputs: true,
    external: {
      ...{ location, offset },
      write(piece) {
        writeSync(file, piece, 0, piece.length, end);
        end += piece.length;
        lengths.push(piece.length);
      },
    },
  });
  expect(fstatSync(file).size).toBe(end);
  closeSync(file);
  writeFileSync(path, bytes);
  // The biases have fewer than 1024 bytes.
  const half = precision === "O1" ? 2 : 4;
  const written = lengths.filter((length) => length === 1200 * half || length === 1500 * half);
  expect(written.length).toBe(2);
  expect(bytes.length).toBeLessThan(4000);
  // The hole takes no disk.
  expect(512 * statSync(join(folder, location)).blocks).toBeLessThan(2 ** 20);

  const input = runtime.tensor(given, [2, 40]);
  const wanted = await (noGrad(() => model.forward(input)) as Tensor).toArray();
  const session = await InferenceSession.create(path, { intraOpNumThreads: 1 });
  const found = await session.run({ input: new OrtTensor("float32", given, [2, 40]) });
  await session.release();
  const opened = await openOnnx(runtime, path);
  const { output } = noGrad(() => opened.forward({ input }));
  const read = (await output?.to("float32").toArray()) ?? [];
  const tolerance = precision === "O1" ? 1e-2 : 1e-5;
  for (const [i, value] of wanted.entries()) {
    expect(Math.abs((found.output?.data[i] as number) - value)).toBeLessThan(tolerance);
    expect(Math.abs((read[i] as number) - value)).toBeLessThan(tolerance);
  }
});

test("large weights are written in pieces, each at a multiple of 4096", async () => {
  const large = new Linear(runtime, 2 ** 13, 2 ** 9 + 1, { generator, bias: false });
  const lengths: number[] = [];
  const write = (bytes: Uint8Array): void => void lengths.push(bytes.length);
  await toOnnx(large, [runtime.zeros([1, 2 ** 13])], {
    external: { location: "data", offset: 10, write },
  });
  expect(lengths).toEqual([4086, 2 ** 24, 2 ** 15]);
});

test.each([
  ["../data", 0, /would not lie in the model's folder/],
  ["/data", 0, /would not lie in the model's folder/],
  ["data", -1, /external data at -1/],
  ["data", 2 ** 53, /external data at 9007199254740992/],
])("%s at %d is refused", async (location, offset, words) => {
  const external = { location, offset, write: () => {} };
  const writing = toOnnx(model, example, { external });
  await expect(writing).rejects.toThrow(words);
  await expect(writing).rejects.toBeInstanceOf(OnnxError);
});
