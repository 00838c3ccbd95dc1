import { describe, expect, test } from "vitest";
import { decodeRows, encodeRows, messageBytes, weightIn } from "./rows-message.js";
import { addRows, countPlaces, rowsByPlace } from "./rows-of-batch.js";

const shape = { size: 10, width: 3 };

describe("rows of a batch", () => {
  test("are one for each place that exists", async () => {
    const index = Uint32Array.of(7, 2, 7, 10, 0xffff_ffff, 0);
    const rows = Float32Array.from({ length: 18 }, (_, i) => i);
    const { places, values } = await rowsByPlace(index, rows, shape);
    expect([...places]).toEqual([7, 2, 0]);
    expect(countPlaces(index, shape.size)).toBe(3);
    expect([...values]).toEqual([0 + 6, 1 + 7, 2 + 8, 3, 4, 5, 15, 16, 17]);
    const sums = new Float32Array(30).fill(1);
    await addRows(sums, { places, values }, 0.5);
    expect([...sums.subarray(21, 24)]).toEqual([4, 5, 6]);
    expect([...sums.subarray(0, 3)]).toEqual([8.5, 9, 9.5]);
    expect(sums.filter((each) => each === 1)).toHaveLength(21);
  });

  test("may be none", async () => {
    const none = await rowsByPlace(Uint32Array.of(12), new Float32Array(3), shape);
    const layout = { format: "float16", capacity: 0, width: 3 } as const;
    const { rows } = await decodeRows(await encodeRows(none, 1, layout), layout);
    expect([rows.places.length, rows.values.length]).toEqual([0, 0]);
    await addRows(new Float32Array(30), rows, 1);
  });

  test.each(["float32", "float16", "bfloat16"] as const)(
    "travel in %s, with a power of two of their own and those that are not finite",
    async (format) => {
      const layout = { format, capacity: 3, width: 3 } as const;
      const values = Float32Array.of(3e6, -2, 0, 2 ** 20, Number.NaN, Number.POSITIVE_INFINITY);
      const sent = { places: Uint32Array.of(9, 4), values };
      const message = await encodeRows(sent, 2.5, layout);
      expect(message.length).toBe(messageBytes(layout));
      expect(weightIn(message)).toBe(2.5);
      const { rows, shift, weight } = await decodeRows(message, layout);
      expect([weight, ...rows.places]).toEqual([2.5, 9, 4]);
      for (const [i, each] of rows.values.entries()) {
        const [found, right] = [each * 2 ** -shift, values[i] as number];
        if (!Number.isFinite(right)) expect(found).toBe(right);
        else expect(Math.abs(found - right)).toBeLessThanOrEqual(Math.abs(right) / 256 + 0.5);
      }
    },
  );
});
