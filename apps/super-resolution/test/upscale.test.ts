import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decibels, type Picture, psnr, toBytes } from "../src/images.js";
import { randomPairs, turned } from "../src/pairs.js";
import { tilesOf } from "../src/upscale.js";

const numbered = (width: number, height: number): Picture => ({
  width,
  height,
  pixels: Uint8Array.from({ length: width * height * 3 }, (_, i) => Math.floor(i / 3) % 256),
});

describe("tiles", () => {
  it("of one size cover an image once, and have what the network looks at around them", () => {
    const side = fc.integer({ min: 1, max: 60 });
    fc.assert(
      fc.property(side, side, fc.integer({ min: 9, max: 30 }), (width, height, tile) => {
        const radius = 4;
        const covered = new Uint8Array(width * height);
        const sizes = new Set<string>();
        for (const { area, inner } of tilesOf({ width, height }, tile, radius)) {
          sizes.add(`${area.width}×${area.height}`);
          for (let y = inner.y; y < inner.y + inner.height; y++)
            for (let x = inner.x; x < inner.x + inner.width; x++) {
              const at = y * width + x;
              covered[at] = (covered[at] as number) + 1;
            }
          expect(area.x).toBeLessThanOrEqual(Math.max(0, inner.x - radius));
          expect(area.y).toBeLessThanOrEqual(Math.max(0, inner.y - radius));
          const [right, bottom] = [inner.x + inner.width, inner.y + inner.height];
          expect(area.x + area.width).toBeGreaterThanOrEqual(Math.min(width, right + radius));
          expect(area.y + area.height).toBeGreaterThanOrEqual(Math.min(height, bottom + radius));
          expect(area.x + area.width).toBeLessThanOrEqual(width);
          expect(area.y + area.height).toBeLessThanOrEqual(height);
        }
        expect(covered.every((times) => times === 1)).toBe(true);
        expect(sizes.size).toBe(1);
      }),
    );
  });

  it("that are all overlap are refused", () => {
    expect(() => [...tilesOf({ width: 50, height: 50 }, 20, 10)]).toThrow(
      /tiles of 20 pixels are all overlap.*larger than 20$/,
    );
  });
});

describe("decibels", () => {
  it("compare images", () => {
    expect(decibels(255 ** 2)).toBe(0);
    expect(psnr([0, 10], [0, 0])).toBeCloseTo(10 * Math.log10(255 ** 2 / 50), 12);
    expect(psnr([1, 2], [1, 2])).toBe(Number.POSITIVE_INFINITY);
    expect(() => psnr([1], [1, 2])).toThrow(RangeError);
  });

  it("are of bytes that are rounded and clamped", () => {
    expect([...toBytes([-3, 0.4, 0.6, 254.7, 300])]).toEqual([0, 0, 1, 255, 255]);
  });
});

describe("pairs for training", () => {
  const options = {
    pictures: [
      { ...numbered(16, 12), path: "photos/a.png" },
      { ...numbered(10, 10), path: "photos/b.png" },
    ],
    ...{ crop: 8, scale: 2, batchSize: 3, batches: 4, seed: 1 },
    kernel: "nearest" as const,
  };
  const epoch = async (number: number, first?: number) => {
    const pairs = [];
    for await (const pair of randomPairs(options, number, first)) pairs.push(pair);
    return pairs;
  };

  it("are the same for an epoch whenever it is asked for, from any batch on", async () => {
    const pairs = await epoch(1);
    expect(pairs).toHaveLength(4);
    expect(await epoch(1)).toEqual(pairs);
    expect(await epoch(1, 2)).toEqual(pairs.slice(2));
    expect(await epoch(2)).not.toEqual(pairs);
  });

  it("are a crop and every second pixel of it", async () => {
    const [{ small, large, count, size }] = (await epoch(0)) as [
      Awaited<ReturnType<typeof epoch>>[0] & object,
    ];
    expect([count, size, small.length, large.length]).toEqual([3, 8, 3 * 16 * 3, 3 * 64 * 3]);
    const largeOnes = new Set(large.subarray(0, 64 * 3));
    expect([...small.subarray(0, 16 * 3)].every((value) => largeOnes.has(value))).toBe(true);
  });

  it("are turned in eight ways", () => {
    const picture = numbered(3, 3);
    const area = { x: 0, y: 0, width: 3, height: 3 };
    const ways = Array.from({ length: 8 }, (_, way) => turned(picture, area, way).pixels.join());
    expect(new Set(ways).size).toBe(8);
    expect(ways[0]).toBe(picture.pixels.join());
  });

  it("that are larger than a picture are refused", async () => {
    const pairs = randomPairs({ ...options, crop: 12 }, 0);
    await expect(pairs.next()).rejects.toThrow(
      /^photos\/b\.png: has 10×10 pixels to learn from, fewer than a crop of 12: lower --crop, or leave/,
    );
  });
});
