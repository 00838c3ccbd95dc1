// Tensors in files beside the model, far into them too.
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { InferenceSession, Tensor as OrtTensor } from "@halfstep/onnxruntime";
import { noGrad } from "@halfstep/tensor";
import { afterAll, expect, test } from "vitest";
import { type ByteSource, fromOnnx, OnnxError } from "../src/index.js";
import { openOnnx } from "../src/node.js";
import { ModelProtoSchema, type TensorProtoSchema } from "../src/schema/onnx_pb.js";
import { runtime } from "./cases.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-external-"));
afterAll(() => rmSync(folder, { recursive: true }));

type TensorInit = MessageInitShape<typeof TensorProtoSchema>;

/** A tensor of a file beside the model. */
const outside = (
  name: string,
  given: Partial<TensorInit>,
  data: Readonly<Record<string, number | string>>,
): TensorInit =>
  ({
    ...{ name, dataType: 1, dataLocation: 1, ...given },
    externalData: Object.entries(data).map(([key, value]) => ({ key, value: `${value}` })),
  }) as TensorInit;

const port = (name: string, ...sizes: bigint[]) => ({
  name,
  type: {
    value: {
      case: "tensorType" as const,
      value: {
        elemType: 1,
        shape: { dim: sizes.map((value) => ({ value: { case: "dimValue" as const, value } })) },
      },
    },
  },
});

/** A file of y = reshape(x + w, shape). */
const sum = (w: TensorInit, shape: TensorInit): Uint8Array =>
  toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 8n,
      opsetImport: [{ domain: "", version: 17n }],
      graph: {
        name: "g",
        node: [
          { opType: "Add", input: ["x", "w"], output: ["s"] },
          { opType: "Reshape", input: ["s", "shape"], output: ["y"] },
        ],
        initializer: [w, shape] as never,
        input: [port("x", 2n)],
        output: [port("y", 2n, 1n)],
      },
    }),
  );

const bytesOf = (numbers: Float32Array | BigInt64Array): Uint8Array =>
  new Uint8Array(numbers.buffer);

test.each([
  ["2 GiB", 2 ** 31 + 4096],
  ["4 GiB", 2 ** 32 + 4096],
])("numbers beyond %s of a sparse file are those that ONNX Runtime reads", async (_, offset) => {
  const model = join(folder, `${offset}.onnx`);
  const data = `${offset}.data`;
  const file = openSync(join(folder, data), "w");
  writeSync(file, bytesOf(Float32Array.of(0.5, -3)), 0, 8, offset);
  writeSync(file, bytesOf(BigInt64Array.of(2n, 1n)), 0, 16, offset + 64);
  closeSync(file);
  const bytes = sum(
    outside("w", { dims: [2n] }, { location: data, offset, length: 8 }),
    outside(
      "shape",
      { dims: [2n], dataType: 7 },
      { location: data, offset: offset + 64, length: 16 },
    ),
  );
  writeFileSync(model, bytes);
  const before = process.resourceUsage().maxRSS;
  const opened = await openOnnx(runtime, model);
  const { y } = noGrad(() => opened.forward({ x: runtime.tensor([1, 2]) }));
  expect([y?.shape, Array.from((await y?.toArray()) ?? [])]).toEqual([
    [2, 1],
    [1.5, -1],
  ]);
  // KiB.
  expect(process.resourceUsage().maxRSS - before).toBeLessThan(2 ** 17);
  // It reads shapes of the model alone.
  const inside: TensorInit = { name: "shape", dims: [2n], dataType: 7, int64Data: [2n, 1n] };
  writeFileSync(
    model,
    sum(outside("w", { dims: [2n] }, { location: data, offset, length: 8 }), inside),
  );
  const session = await InferenceSession.create(model, { intraOpNumThreads: 1 });
  const found = await session.run({ x: new OrtTensor("float32", Float32Array.of(1, 2), [2]) });
  await session.release();
  expect(Array.from(found.y?.data as Float32Array)).toEqual([1.5, -1]);
});

test("a large tensor is read in pieces", async () => {
  const count = 2 ** 23 + 5;
  const ranges: [offset: number, length: number][] = [];
  const file: ByteSource = {
    size: 2 ** 40,
    read(offset, into) {
      ranges.push([offset, into.length]);
      new Float32Array(into.buffer, into.byteOffset, into.length / 4).fill(ranges.length);
    },
  };
  const start = 2 ** 33;
  const bytes = sum(
    outside("w", { dims: [BigInt(count)] }, { location: "w", offset: start, length: 4 * count }),
    { name: "shape", dims: [1n], dataType: 7, int64Data: [-1n] },
  );
  const model = fromOnnx(runtime, bytes, { external: () => file });
  const piece = 2 ** 24;
  expect(ranges).toEqual([
    [start, piece],
    [start + piece, piece],
    [start + 2 * piece, 20],
  ]);
  const [weight] = [...model.parameters()];
  const numbers = (await weight?.toArray()) ?? [];
  expect([numbers[0], numbers[2 ** 22], numbers.at(-1)]).toEqual([1, 2, 3]);
});

const whole = { location: "data", offset: 0, length: 8 };
const shape: TensorInit = { name: "shape", dims: [1n], dataType: 7, int64Data: [-1n] };

test.each([
  ["a path upwards", { ...whole, location: "../data" }, /no file in the model's folder/],
  [
    "a path upwards, later",
    { ...whole, location: "a/../../data" },
    /no file in the model's folder/,
  ],
  ["an absolute path", { ...whole, location: "/etc/passwd" }, /no file in the model's folder/],
  ["a path of Windows", { ...whole, location: "..\\data" }, /no file in the model's folder/],
  ["a drive", { ...whole, location: "C:data" }, /no file in the model's folder/],
  ["a zero byte", { ...whole, location: "data\0" }, /no file in the model's folder/],
  ["no path", { offset: 0, length: 8 }, /no file in the model's folder/],
  ["a file that is missing", { ...whole, location: "lost" }, /ENOENT.*: copy "lost" into/],
  ["a folder", { ...whole, location: "data.folder" }, /is no file/],
  [
    "a range beyond the file",
    { ...whole, offset: 1 },
    /needs 8 bytes of "data" from 1, and this has 8/,
  ],
  ["an offset of 2^53", { ...whole, offset: "9007199254740992" }, /lies in 8 of "data" from 900/],
  ["a negative offset", { ...whole, offset: -8 }, /lies in 8 of "data" from -8/],
  ["an offset that is no number", { ...whole, offset: "0x8" }, /from 0x8/],
  ["another length", { ...whole, length: 12 }, /needs 8 bytes, and lies in 12/],
])("%s is refused with the file and the tensor", async (_, data, words) => {
  mkdirSync(join(folder, "data.folder"), { recursive: true });
  writeFileSync(join(folder, "data"), new Uint8Array(8));
  const path = join(folder, "hostile.onnx");
  writeFileSync(path, sum(outside("w", { dims: [2n] }, data), shape));
  const error = await openOnnx(runtime, path).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OnnxError);
  const { message, source } = error as OnnxError;
  expect(source).toBe(path);
  expect(message.startsWith(`${path}: tensor "w" `)).toBe(true);
  expect(message).toMatch(words);
});

test("without its folder, a model with other files is refused", () => {
  const bytes = sum(outside("w", { dims: [2n] }, whole), shape);
  expect(() => fromOnnx(runtime, bytes)).toThrow("by openOnnx() of @halfstep/onnx/node");
});

test("a model of 2 GiB and more, and one that is missing, are refused", async () => {
  const path = join(folder, "long.onnx");
  const file = openSync(path, "w");
  ftruncateSync(file, 2 ** 31);
  closeSync(file);
  await expect(openOnnx(runtime, path)).rejects.toThrow("save its tensors as external data");
  await expect(openOnnx(runtime, join(folder, "none.onnx"))).rejects.toMatchObject({
    code: "ENOENT",
  });
});
