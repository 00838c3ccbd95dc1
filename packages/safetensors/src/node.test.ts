import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, open, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  readSafetensors,
  SafetensorsError,
  writeSafetensors,
  writeSafetensorsTo,
} from "./index.js";
import { openSafetensors, type ReadableHandle, writeSafetensorsFile } from "./node.js";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "halfstep-safetensors-"));
});
afterAll(() => rm(folder, { recursive: true }));

const weight = { dtype: "F32", shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } as const;
const bias = { dtype: "F16", shape: [3], data: Uint16Array.of(1, 2, 3) } as const;
const codes = { dtype: "U8", shape: [1], data: Uint8Array.of(9) } as const;
const tensors = { weight, bias, codes };
const bytes = writeSafetensors(tensors, { metadata: { epoch: "3" } });

/** A handle over bytes that notes what is read, and gives at most `most` bytes at once. */
function handleOver(content: Uint8Array, most = Number.POSITIVE_INFINITY) {
  const reads: [position: number, length: number][] = [];
  const handle: ReadableHandle = {
    stat: async () => ({ size: content.length }),
    read: async (into, offset, length, position) => {
      const piece = content.subarray(position, position + Math.min(length, most));
      into.set(piece, offset);
      reads.push([position, piece.length]);
      return { bytesRead: piece.length };
    },
  };
  return { handle, reads };
}

describe("openSafetensors", () => {
  test("reads the header, then nothing but what is asked for", async () => {
    const { handle, reads } = handleOver(bytes);
    const file = await openSafetensors(handle);
    const header = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    expect(reads.splice(0)).toEqual([
      [0, 8],
      [8, header],
    ]);
    expect({ ...file.metadata }).toEqual({ epoch: "3" });
    expect({ ...file.tensors }).toEqual({
      weight: { dtype: "F32", shape: [2, 2], byteOffset: 8 + header, byteLength: 16 },
      bias: { dtype: "F16", shape: [3], byteOffset: 24 + header, byteLength: 6 },
      codes: { dtype: "U8", shape: [1], byteOffset: 30 + header, byteLength: 1 },
    });
    expect(await file.read("bias")).toEqual(bias);
    expect(reads.splice(0)).toEqual([[24 + header, 6]]);
    expect({ ...(await file.readAll(["codes", "weight"])) }).toEqual({ codes, weight });
    expect({ ...(await file.readAll()) }).toEqual(tensors);
  });

  test("a tensor has memory of its own, aligned or not in the file", async () => {
    const { handle } = handleOver(bytes);
    const file = await openSafetensors(handle);
    const { data } = await file.read("bias");
    expect([data.byteOffset, data.buffer.byteLength]).toEqual([0, 6]);
    expect((await file.read("bias")).data).not.toBe(data);
  });

  test("goes on where the system reads less than asked for", async () => {
    const file = await openSafetensors(handleOver(bytes, 3).handle);
    expect({ ...(await file.readAll()) }).toEqual(tensors);
  });

  test("takes a path, a URL or a handle, and closes what it opened", async () => {
    const path = join(folder, "opened.safetensors");
    await writeFile(path, bytes);
    for (const place of [path, pathToFileURL(path)]) {
      const file = await openSafetensors(place);
      expect(await file.read("weight")).toEqual(weight);
      await file.close();
      await expect(file.read("weight")).rejects.toThrow("file closed");
    }
    const handle = await open(path);
    const file = await openSafetensors(handle);
    await file.close();
    expect(await file.read("codes")).toEqual(codes);
    await handle.close();
  });

  test("names the file in errors, and leaves none open", async () => {
    const path = join(folder, "cut.safetensors");
    await writeFile(path, bytes.subarray(0, bytes.length - 1));
    const openFiles = () => readdirSync("/proc/self/fd").length;
    const before = process.platform === "linux" ? openFiles() : 0;
    for (let i = 0; i < 20; i += 1)
      await expect(openSafetensors(path)).rejects.toThrow(`${path}: tensor "codes": its data ends`);
    if (process.platform === "linux") expect(openFiles()).toBeLessThan(before + 10);
    await expect(openSafetensors(path, { source: "checkpoint 7" })).rejects.toThrow(
      /^checkpoint 7: /,
    );
    await expect(openSafetensors(join(folder, "none"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(openSafetensors(folder)).rejects.toThrow();
  });

  test("a file that is cut after it was opened is an error, and so is an unknown name", async () => {
    const path = join(folder, "shrinking.safetensors");
    await writeFile(path, bytes);
    const file = await openSafetensors(path);
    await truncate(path, bytes.length - 4);
    await expect(file.read("bias")).rejects.toMatchObject({ problem: "truncated", tensor: "bias" });
    await expect(file.read("Weight")).rejects.toMatchObject({ problem: "unknown-tensor" });
    await expect(file.read("__proto__")).rejects.toBeInstanceOf(SafetensorsError);
    expect(await file.read("weight")).toEqual(weight);
    await file.close();
  });

  test("what fits no array is an error, and all else of the file can be read", async () => {
    const size = 2 ** 49;
    const json = `{"huge":{"dtype":"U8","shape":[${size}],"data_offsets":[1,${size + 1}]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`;
    const start = new Uint8Array(8 + json.length + 1);
    new DataView(start.buffer).setBigUint64(0, BigInt(json.length), true);
    start.set(new TextEncoder().encode(json), 8);
    start.set([42], 8 + json.length);
    const { handle } = handleOver(start);
    const file = await openSafetensors({
      ...handle,
      stat: async () => ({ size: start.length + size }),
    });
    await expect(file.read("huge")).rejects.toMatchObject({ problem: "too-large", tensor: "huge" });
    expect((await file.read("a")).data).toEqual(Uint8Array.of(42));
  });

  test("the limit of the header can be lowered, not raised", async () => {
    const { handle } = handleOver(bytes);
    await expect(openSafetensors(handle, { maxHeaderBytes: 100 })).rejects.toMatchObject({
      problem: "header-length",
    });
    const { handle: claiming, reads } = handleOver(
      Uint8Array.of(0x01, 0xe1, 0xf5, 0x05, 0, 0, 0, 0, 0x7b),
    );
    const endless = { ...claiming, stat: async () => ({ size: 2 ** 40 }) };
    await expect(openSafetensors(endless, { maxHeaderBytes: 1e12 })).rejects.toMatchObject({
      problem: "header-length",
      message: "the header has 100000001 bytes, the limit is 100000000 (at byte 0)",
    });
    expect(reads).toEqual([[0, 8]]);
  });
});

describe("writeSafetensorsFile", () => {
  test("writes what writeSafetensors makes, and nothing more of an older file", async () => {
    const path = join(folder, "written.safetensors");
    await writeFile(path, new Uint8Array(10_000));
    await writeSafetensorsFile(path, tensors, { metadata: { epoch: "3" } });
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
  });

  test("leaves an older file alone when something cannot be stored", async () => {
    const path = join(folder, "older.safetensors");
    await writeFile(path, bytes);
    const wrong = { weight: { ...weight, shape: [5] } };
    await expect(writeSafetensorsFile(path, wrong)).rejects.toBeInstanceOf(SafetensorsError);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
    await expect(writeSafetensorsFile(folder, tensors)).rejects.toMatchObject({ code: "EISDIR" });
  });

  test("leaves an older file alone, and nothing else, when its data cannot be had", async () => {
    const inner = await mkdtemp(join(folder, "whole-"));
    const path = join(inner, "older.safetensors");
    await writeFile(path, bytes);
    const lost = { ...bias, data: () => Promise.reject(new Error("the device is lost")) };
    await expect(writeSafetensorsFile(path, { weight, lost })).rejects.toThrow("is lost");
    await expect(writeSafetensorsFile(pathToFileURL(inner), tensors)).rejects.toMatchObject({
      code: "EISDIR",
    });
    expect(readdirSync(inner)).toEqual(["older.safetensors"]);
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes);
  });

  test("may be looked at before it takes its place", async () => {
    const inner = await mkdtemp(join(folder, "inspected-"));
    const path = join(inner, "model.safetensors");
    await writeSafetensorsFile(path, tensors, {
      inspect: async (file) => {
        expect({ ...(await file.readAll()) }).toEqual(tensors);
        expect(readdirSync(inner)).not.toContain("model.safetensors");
      },
    });
    const before = readFileSync(path);
    const refused = writeSafetensorsFile(
      path,
      { bias },
      {
        inspect: () => Promise.reject(new Error("not what was meant")),
      },
    );
    await expect(refused).rejects.toThrow("not what was meant");
    expect(readFileSync(path)).toEqual(before);
    expect(readdirSync(inner)).toEqual(["model.safetensors"]);
  });

  test("a handle takes it too, with deferred data", async () => {
    const path = join(folder, "handle.safetensors");
    const handle = await open(path, "w");
    const deferred = { ...bias, data: () => Promise.resolve(bias.data) };
    const written = await writeSafetensorsTo(handle, { ...tensors, bias: deferred });
    await handle.close();
    const file = readFileSync(path);
    expect(written).toBe(file.length);
    expect({ ...readSafetensors(file).tensors }).toEqual(tensors);
  });
});
