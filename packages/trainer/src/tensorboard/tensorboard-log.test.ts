import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { StorageError } from "../errors.js";
import { crc32c } from "./crc32c.js";
import { type Event, eventRecord } from "./event.js";
import { tensorBoardLog } from "./tensorboard-log.js";

/** Records that TensorBoard's own protocol buffers and record writer made: test/golden/event-files.py. */
const golden: readonly { readonly event: Event; readonly hex: string }[] = JSON.parse(
  readFileSync(new URL("../../test/golden/event-files.json", import.meta.url), "utf8"),
);

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("event files", () => {
  it("have CRC-32C as published", () => {
    // RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
    const vectors: readonly (readonly [Uint8Array, number])[] = [
      [new TextEncoder().encode("123456789"), 0xe3069283],
      [new Uint8Array(32), 0x8a9136aa],
      [new Uint8Array(32).fill(0xff), 0x62a8ab43],
      [Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ];
    expect(vectors.map(([bytes]) => crc32c(bytes))).toEqual(vectors.map(([, crc]) => crc));
  });

  it("are TensorBoard's own, byte for byte", () => {
    expect(golden.length).toBeGreaterThan(5);
    expect(golden.map(({ event }) => hexOf(eventRecord(event)))).toEqual(
      golden.map(({ hex }) => hex),
    );
  });
});

/** A field of a protocol buffer: number, and its bytes or its integer. */
type Field = readonly [field: number, value: Buffer | number];

/** An independent reader: nothing of the writer's is used. */
function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let power = 1; ; power *= 128) {
      const byte = bytes.readUInt8(at++);
      value += (byte & 127) * power;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const type = key & 7;
    if (type === 0) fields.push([key >> 3, varint()]);
    else {
      const length = type === 1 ? 8 : type === 5 ? 4 : varint();
      fields.push([key >> 3, bytes.subarray(at, at + length)]);
      at += length;
    }
  }
  return fields;
}

const bitwiseCrc = (bytes: Buffer): number => {
  let crc = 0xffffffffn;
  for (const byte of bytes)
    for (let i = 0; i < 8; i++) {
      const bit = (crc ^ (BigInt(byte) >> BigInt(i))) & 1n;
      crc = (crc >> 1n) ^ (bit * 0x82f63b78n);
    }
  crc ^= 0xffffffffn;
  return Number((((crc >> 15n) | (crc << 17n)) + 0xa282ead8n) & 0xffffffffn);
};

/** The events of a file, as text; throws where a checksum is wrong. */
function readEvents(path: string): string[] {
  const file = readFileSync(path);
  const events: string[] = [];
  for (let at = 0; at < file.length; ) {
    const length = Number(file.readBigUInt64LE(at));
    const data = file.subarray(at + 12, at + 12 + length);
    if (
      file.readUInt32LE(at + 8) !== bitwiseCrc(file.subarray(at, at + 8)) ||
      file.readUInt32LE(at + 12 + length) !== bitwiseCrc(data)
    )
      throw new Error(`a wrong checksum at ${at}`);
    const fields = new Map(fieldsOf(data));
    const texts = [`step ${fields.get(2) ?? 0}`];
    if (fields.has(3)) texts.push(String(fields.get(3)));
    if (fields.has(7)) texts.push("restart");
    for (const [, value] of fieldsOf((fields.get(5) as Buffer) ?? Buffer.alloc(0))) {
      const scalar = new Map(fieldsOf(value as Buffer));
      texts.push(`${scalar.get(1)}=${(scalar.get(2) as Buffer).readFloatLE(0)}`);
    }
    events.push(texts.join(" "));
    at += length + 16;
  }
  return events;
}

describe("tensorBoardLog", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "halfstep-tensorboard-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("writes steps, evaluations and what else one wants, and can be read while it is written", () => {
    const directory = join(folder, "run/float16");
    const log = tensorBoardLog(directory, { now: () => 1_700_000_000.5 });
    const step = { precision: "float16", epoch: 1, lr: 0.5, scale: 1024 };
    log.onStep?.({ ...step, step: 1, loss: 2.5, applied: true }, undefined);
    log.onStep?.({ ...step, step: 300, loss: null, applied: false }, undefined);
    log.onEvaluation?.({
      ...{ kind: "evaluation", precision: "float16", step: 300, epoch: 1, best: true },
      values: { loss: 0.25, accuracy: null },
    });
    log.scalar("train/gradient norm", 3, 2 ** 40);
    const [name = ""] = readdirSync(directory);
    expect(name).toMatch(/^events\.out\.tfevents\.1700000000\./);
    expect(log.path).toBe(join(directory, name));
    expect(readEvents(log.path)).toEqual([
      "step 0 brain.Event:2",
      "step 1 train/loss=2.5 train/lr=0.5 train/loss scale=1024 train/epoch=1",
      "step 300 train/lr=0.5 train/loss scale=1024 train/epoch=1",
      "step 300 evaluation/loss=0.25",
      "step 1099511627776 train/gradient norm=3",
    ]);
    log.close();
    log.close();
    expect(() => log.scalar("x", 1, 1)).toThrow("is closed");
  });

  it("goes on in another file, and has what came after the checkpoint forgotten", async () => {
    const directory = join(folder, "resumed");
    const first = tensorBoardLog(directory);
    const metrics = { precision: "float32", epoch: 1, lr: 1, scale: 1, loss: 1, applied: true };
    for (const step of [1, 2]) first.onStep?.({ ...metrics, step }, undefined);
    const state = (await first.stateDict?.()) as never;
    first.onStep?.({ ...metrics, step: 3 }, undefined);
    first.close();
    const second = tensorBoardLog(directory);
    second.loadStateDict?.(state);
    expect(readEvents(second.path)).toEqual(["step 0 brain.Event:2", "step 3 restart"]);
    expect(await second.stateDict?.()).toEqual({ step: 2 });
    expect(readdirSync(directory)).toHaveLength(2);
    expect(() => second.loadStateDict?.({ step: -1 } as never)).toThrow("needs the step");
    second.close();
  });

  it("says where it cannot write", () => {
    expect(() => tensorBoardLog("/proc/none/here")).toThrow(StorageError);
  });
});
