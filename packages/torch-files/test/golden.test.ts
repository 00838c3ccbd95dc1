import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { dtypeNames, type SafetensorsTensor } from "@halfstep/safetensors";
import { describe, expect, test } from "vitest";
import { openTorch, readTorch, type TorchFile } from "../src/index.js";
import { op } from "../src/pickle/opcodes.js";
import { archive, dict, int, type Part, pickle, str, tensor } from "./build.js";
import { golden, goldenPath } from "./golden.js";

const plain = ({ dtype, shape, data }: SafetensorsTensor) => ({
  dtype: dtypeNames[dtype],
  shape,
  bytes: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex"),
});
const contentOf = async (file: TorchFile) =>
  Object.fromEntries(
    Object.entries(await file.readAll()).map(([name, tensor]) => [name, plain(tensor)]),
  );

const files = Object.keys(golden).filter((name) => name !== "sharded");

describe.each(files)("%s", (name) => {
  const content = golden[name];

  test("has the tensors that torch wrote, by path, by URL, by handle and in memory", async () => {
    const path = goldenPath(name);
    await using file = await openTorch(path);
    expect(await contentOf(file)).toEqual(content);
    expect(Object.keys(file.tensors)).toEqual(Object.keys(content ?? {}));
    await using byUrl = await openTorch(pathToFileURL(path));
    const handle = await open(path);
    const byHandle = await openTorch(handle);
    const inMemory = await readTorch(readFileSync(path));
    for (const other of [byUrl, byHandle, inMemory]) expect(other.tensors).toEqual(file.tensors);
    expect(await contentOf(inMemory)).toEqual(content);
    await byHandle.close();
    // The handle is its owner's: it is open still.
    expect(await contentOf(byHandle)).toEqual(content);
    await handle.close();
  });

  test("says before it is read what it has", async () => {
    await using file = await openTorch(goldenPath(name));
    for (const [tensor, { dtype, shape, byteLength }] of Object.entries(file.tensors))
      expect({ dtype: dtypeNames[dtype], shape, byteLength }).toEqual({
        dtype: content?.[tensor]?.dtype,
        shape: content?.[tensor]?.shape,
        byteLength: (content?.[tensor]?.bytes.length ?? 0) / 2,
      });
  });
});

test.each(["training.th", "training.pth"])(
  "%s: the wrapping is taken off, and said",
  async (name) => {
    await using file = await openTorch(goldenPath(name));
    expect([file.path, file.prefix]).toEqual([["state_dict"], "module."]);
    expect(file.skipped).toEqual(["best_prec1", "optimizer"]);
  },
);

test("several models in a file are named, and one is chosen by its key", async () => {
  const path = goldenPath("gan.pt");
  await expect(openTorch(path)).rejects.toMatchObject({
    problem: "state-dict",
    message: `${path}: has tensors under "generator", "critic": choose one by the option key`,
  });
  await using file = await openTorch(path, { key: "critic" });
  expect(file.tensors).toEqual({ weight: { dtype: "F32", shape: [3], byteLength: 12 } });
  await expect(openTorch(path, { key: "ema" })).rejects.toThrow(
    'has nothing under the key "ema": its keys are "generator", "critic"',
  );
});

test("tensors beside a dict of tensors leave a choice, and what is not chosen is said", async () => {
  const path = goldenPath("beside.pt");
  await expect(openTorch(path)).rejects.toMatchObject({
    problem: "state-dict",
    message: `${path}: has tensors of its own, "epoch", and under "mynet": choose by the option key, which is "" for its own`,
  });
  await using own = await openTorch(path, { key: "" });
  expect(Object.keys(own.tensors)).toEqual(["epoch"]);
  expect(own.skipped).toEqual(["mynet", "optimizer", "history"]);
  await using net = await openTorch(path, { key: "mynet" });
  expect(Object.keys(net.tensors)).toEqual(["weight", "bias"]);
  expect(net.skipped).toEqual(["epoch", "optimizer", "history"]);
  await using moments = await openTorch(path, { key: "optimizer.state.0" });
  expect(Object.keys(moments.tensors)).toEqual(["exp_avg"]);
  expect(moments.skipped).toEqual(["epoch", "mynet", "history"]);
  await expect(openTorch(path, { key: "optimizer.state" })).rejects.toThrow(
    'has tensors only under keys that are no text: its keys are "0". Choose one by the option key, such as "optimizer.state.0", or save',
  );
});

test("tensors under numbers are not read, and that is said", async () => {
  const numbered = (...keys: readonly number[]): Part => [
    ...[op.EMPTY_DICT, op.MARK],
    ...keys.flatMap((key) => [int(key), tensor()]),
    op.SETITEMS,
  ];
  await expect(readTorch(archive(pickle(numbered(0, 1))))).rejects.toThrow(
    "has tensors under keys that are no text (0, 1), which are not read: save them by names",
  );
  const wrapped = archive(pickle(dict({ state_dict: numbered(3) })));
  await expect(readTorch(wrapped)).rejects.toThrow("keys that are no text (3), which are not read");
  const mixed = archive(
    pickle([op.EMPTY_DICT, op.MARK, int(7), tensor(), str("w"), tensor(), op.SETITEMS]),
  );
  const { tensors, skipped } = await readTorch(mixed);
  expect([Object.keys(tensors), skipped]).toEqual([["w"], ["7"]]);
});

test("within a wrapper the choice is named from the outside", async () => {
  const w = tensor();
  const bytes = archive(
    pickle(dict({ model: dict({ w, head: dict({ w }), _extra_state: dict({ w }) }) })),
  );
  await expect(readTorch(bytes)).rejects.toThrow(
    'has tensors of its own, "w", and under "model.head": choose by the option key, which is "model" for its own',
  );
  const { tensors, skipped } = await readTorch(bytes, { key: "model" });
  expect([Object.keys(tensors), skipped]).toEqual([["w"], ["model.head", "model._extra_state"]]);
  // What modules keep beside their tensors leaves no choice.
  const extra = await readTorch(archive(pickle(dict({ w, "a._extra_state": dict({ w }) }))));
  expect([Object.keys(extra.tensors), extra.skipped]).toEqual([["w"], ["a._extra_state"]]);
  const plain = await readTorch(archive(pickle(dict({ w, v: w }))));
  expect(plain.skipped).toEqual([]);
});

test.each([
  ["sparse.pt", "unsupported", "save it dense, as tensor.to_dense()"],
  ["quantized.pt", "unsupported", "tensor.dequantize()"],
  ["nothing.pt", "state-dict", 'its keys are "epoch", "args". Save the state_dict() of the model'],
  [
    "negative-integers.pt",
    "unsupported",
    'tensor "weight": is a view of I64 with the bits "neg", which is not read: save a copy, as tensor.resolve_conj().resolve_neg()',
  ],
  ["scripted.pt", "kind", "is a TorchScript archive (torch.jit.save): save torch.jit.load(file)"],
])("%s is refused with a remedy", async (name, problem, remedy) => {
  const path = goldenPath(name);
  await expect(openTorch(path)).rejects.toMatchObject({
    problem,
    source: path,
    message: expect.stringContaining(remedy),
  });
});

test("a tensor is read by its range, and nothing else is", async () => {
  const bytes = readFileSync(goldenPath("every-kind.pt"));
  const reads: number[] = [];
  const file = await openTorch({
    stat: async () => ({ size: bytes.length }),
    read: async (into, offset, length, position) => {
      reads.push(length);
      into.set(bytes.subarray(position, position + length), offset);
      return { bytesRead: length };
    },
  });
  reads.length = 0;
  // Rows 1 and 2 of 6 columns, from column 2 to 4: from the ninth to the seventeenth element.
  expect((await file.read("part")).data).toEqual(Float32Array.of(0, 1, 2, 6, 7, 8));
  expect(reads.at(-1)).toBe(9 * 4);
});
