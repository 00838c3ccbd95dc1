import { expect, it } from "vitest";
import { fingerprintOf, isOverwritten } from "./overwritten-batch.js";

class Encoded {
  readonly ids = Uint32Array.of(1, 2, 3);
}

/** A batch of each form, and a change by which it becomes another batch. */
const overwritten: Readonly<Record<string, () => [batch: unknown, change: () => void]>> = {
  "an array": () => {
    const batch = new Float32Array(5000);
    return [batch, () => batch.fill(1)];
  },
  "a list of numbers": () => {
    const batch = [1, 2, 3];
    return [batch, () => batch.reverse()];
  },
  "64-bit integers": () => {
    const batch = BigInt64Array.of(1n);
    return [{ batch }, () => batch.fill(2n)];
  },
  "an array in an object in an object": () => {
    const ids = Uint32Array.of(1, 2);
    return [{ inputs: { ids }, labels: [0] }, () => ids.set([2, 1])];
  },
  "a list of rows": () => {
    const rows = [
      [1, 2],
      [3, 4],
    ];
    return [rows, () => void (rows[1] as number[]).fill(0)];
  },
  "an object whose array is replaced": () => {
    const batch = { x: Float32Array.of(1) };
    return [batch, () => Object.assign(batch, { x: Float32Array.of(2) })];
  },
  "an instance of a class": () => {
    const batch = new Encoded();
    return [batch, () => void batch.ids.fill(0)];
  },
  "a map": () => {
    const x = Float32Array.of(1);
    return [new Map([["x", x]]), () => void x.fill(2)];
  },
  "a number that becomes NaN": () => {
    const x = Float32Array.of(1);
    return [{ x }, () => void x.fill(Number.NaN)];
  },
};

it.each(Object.entries(overwritten))("sees that %s was overwritten", (_, make) => {
  const [batch, change] = make();
  const fingerprint = fingerprintOf(batch);
  expect(isOverwritten(fingerprint)).toBe(false);
  change();
  expect(isOverwritten(fingerprint)).toBe(true);
});

it("leaves alone what is no number of the batch: notes, growing lists, getters", () => {
  const history = [1];
  const inputs: Record<string, unknown> = { x: Float32Array.of(1, Number.NaN) };
  const batch: Record<string, unknown> = { inputs, history };
  Object.defineProperty(batch, "decoded", { enumerable: true, get: () => Float32Array.of(1) });
  Object.defineProperty(batch, "broken", {
    enumerable: true,
    get: () => expect.unreachable("a getter was called"),
  });
  const fingerprint = fingerprintOf(batch);
  history.push(2);
  batch.isDone = true;
  inputs.cached = Float32Array.of(3);
  expect(isOverwritten(fingerprint)).toBe(false);
});

it("ends, whatever a batch refers to", () => {
  const ring: Record<string, unknown> = { x: Float32Array.of(1) };
  ring.self = ring;
  expect(isOverwritten(fingerprintOf(ring))).toBe(false);
  const many = Array.from({ length: 10_000 }, (_, i) => [i]);
  expect(fingerprintOf(many).arrays.length).toBeLessThan(100);
  for (const nothing of [undefined, null, 3, "text", () => 1, new DataView(new ArrayBuffer(4))])
    expect(isOverwritten(fingerprintOf(nothing))).toBe(false);
});
