import { DataError } from "@halfstep/data";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ignored } from "../src/masks.js";
import { coveringTiles, encoded, stepsPerEpoch, trainingTiles } from "../src/tiles.js";
import { numbered } from "./scenes.js";

describe("training tiles", () => {
  const set = { train: [numbered(40, 16), numbered(24, 48)], flips: true };
  const options = { tile: 16, batchSize: 3, seed: 5 };

  it("follow from seed and epoch, from any batch on", () => {
    const whole = [...trainingTiles(set, options, 2)];
    // 40·16 / 16² is 2.5, 24·48 / 16² is 4.5: 3 and 5 tiles.
    expect(whole).toHaveLength(2);
    expect(stepsPerEpoch(set, options)).toBe(2);
    expect([...trainingTiles(set, options, 2, 1)]).toEqual(whole.slice(1));
    expect([...trainingTiles(set, options, 3)]).not.toEqual(whole);
    expect([...trainingTiles(set, { ...options, seed: 6 }, 2)]).not.toEqual(whole);
  });

  it("keep each pixel with its label, mirrored or not", () => {
    // The label of a pixel is its parity, and so is that of its place, as rows are even.
    const byte = new Map(Array.from(encoded.logarithmic, (number, i) => [number, i]));
    const orders = new Set<number>();
    for (const { images, labels, shape } of trainingTiles(set, { ...options, batchSize: 8 }, 0)) {
      expect(shape).toEqual([8, 16, 16, 1]);
      const bytes = Array.from(images, (value) => byte.get(value) as number);
      expect(bytes.map((value) => value % 2)).toEqual([...labels]);
      for (let tile = 0; tile < 8; tile++)
        orders.add(((bytes[tile * 256 + 1] as number) - (bytes[tile * 256] as number) + 256) % 256);
    }
    expect([...orders].sort((a, b) => a - b)).toEqual([1, 255]);
  });

  it("of sets that must not be mirrored are as they are", () => {
    const [batch] = trainingTiles({ ...set, flips: false }, { ...options, batchSize: 8 }, 0);
    const rows = Array.from({ length: 8 }, (_, i) => batch?.images.subarray(i * 256, i * 256 + 2));
    expect(rows.every((row) => row && (row[1] as number) > (row[0] as number))).toBe(true);
  });

  it("are as many as a batch needs, even of a small scene", () => {
    const [batch] = trainingTiles({ train: [numbered(16, 16)], flips: false }, options, 0);
    expect(batch?.shape).toEqual([3, 16, 16, 1]);
  });

  it("are refused where a scene is smaller", () => {
    expect(() => [
      ...trainingTiles({ train: [numbered(40, 15)], flips: true }, options, 0),
    ]).toThrow(
      /^15×40: is 15×40 pixels, and tiles are 16×16: take a smaller --tile or a larger --scale/,
    );
    expect(() => [...coveringTiles([numbered(8, 40)], options)]).toThrow(DataError);
    const file = { path: "imgs/p 4.png", height: 53, width: 70, scale: 0.5 };
    const halved = { ...numbered(27, 35), file };
    expect(() => [...coveringTiles([halved], { ...options, tile: 32 })]).toThrow(
      /^imgs\/p 4\.png: is 35×27 pixels at scale 0\.5 \(the file has 70×53\), and tiles are 32×32: take/,
    );
    const whole = { ...numbered(8, 40), file: { ...file, height: 8, width: 40, scale: 1 } };
    expect(() => [...coveringTiles([whole], options)]).toThrow(
      /^imgs\/p 4\.png: is 40×8 pixels, and tiles are 16×16: take/,
    );
  });
});

describe("covering tiles", () => {
  it("count each pixel of each scene once", () => {
    const size = fc.integer({ min: 4, max: 15 });
    fc.assert(
      fc.property(size, size, fc.integer({ min: 1, max: 5 }), (height, width, batchSize) => {
        const scene = numbered(height, width, 255);
        const seen: number[] = [];
        for (const { labels } of coveringTiles([scene], { tile: 4, batchSize }))
          seen.push(...[...labels].filter((label) => label !== ignored));
        const ascending = (a: number, b: number): number => a - b;
        expect(seen.sort(ascending)).toEqual([...scene.labels].sort(ascending));
      }),
      { numRuns: 50 },
    );
  });
});

it("encodes bytes between −1 and 1, darker ones farther apart", () => {
  const numbers = [0, 1, 3, 15, 255].map((byte) => encoded.logarithmic[byte]);
  expect(numbers).toEqual([-1, -0.75, -0.5, 0, 1]);
});
