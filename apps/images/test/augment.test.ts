import { expect, it } from "vitest";
import { type Crop, randomOf, randomResizedCrop, randomShift } from "../src/augment.js";

const take = (count: number, next: () => number): number[] => Array.from({ length: count }, next);

it("random numbers follow from seed, epoch and image, and from nothing else", () => {
  const first = take(9, randomOf(7, 3, 41));
  const next = randomOf(7, 3, 41);
  take(50, randomOf(7, 3, 40));
  expect(take(9, next)).toEqual(first);
  const others = [
    randomOf(8, 3, 41),
    randomOf(7, 4, 41),
    randomOf(7, 3, 42),
    randomOf(7 + 2 ** 32, 3, 41),
  ];
  expect(new Set([first, ...others.map((other) => take(9, other))].map(String)).size).toBe(5);
  expect(new Set(first).size).toBe(9);
  const many = take(4000, randomOf(1, 0, 0));
  expect(Math.min(...many)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...many)).toBeLessThan(1);
  expect(many.reduce((sum, value) => sum + value) / 4000).toBeCloseTo(0.5, 1);
});

it("crops lie in the image and have torchvision's sizes and sides", () => {
  const outside: Crop[] = [];
  const shares: number[] = [];
  for (const [width, height] of [
    [500, 375],
    [28, 28],
    [31, 400],
    [1, 1],
  ] as const)
    for (let image = 0; image < 500; image++) {
      const crop = randomResizedCrop({ width, height }, 0.08, randomOf(1, 0, image));
      const { left, top } = crop;
      const fits =
        Number.isInteger(left) &&
        Number.isInteger(top) &&
        left >= 0 &&
        top >= 0 &&
        crop.width >= 1 &&
        crop.height >= 1 &&
        left + crop.width <= width &&
        top + crop.height <= height;
      if (!fits) outside.push(crop);
      if (width === 500) {
        shares.push((crop.width * crop.height) / (width * height));
        const ratio = crop.width / crop.height;
        if (ratio < 0.74 || ratio > 1.35) outside.push(crop);
      }
    }
  expect(outside).toEqual([]);
  expect(Math.min(...shares)).toBeLessThan(0.1);
  expect(Math.max(...shares)).toBeGreaterThan(0.9);
});

it("a crop that cannot be found is the largest in the middle", () => {
  const always = (value: number) => () => value;
  expect(randomResizedCrop({ width: 100, height: 10 }, 1, always(0.5))).toEqual({
    ...{ left: 43, top: 0, width: 13, height: 10 },
  });
  expect(randomResizedCrop({ width: 10, height: 100 }, 1, always(0.5))).toEqual({
    ...{ left: 0, top: 43, width: 10, height: 13 },
  });
});

it("shifts go everywhere up to the padding, and mirror half of the images", () => {
  const shifts = Array.from({ length: 2000 }, (_, i) => randomShift(2, true, randomOf(5, 1, i)));
  expect(new Set(shifts.map(({ down, right }) => `${down} ${right}`)).size).toBe(25);
  const mirrored = shifts.filter(({ isMirrored }) => isMirrored).length;
  expect(Math.abs(mirrored - 1000)).toBeLessThan(120);
  expect(randomShift(0, false, randomOf(5, 1, 1))).toEqual({
    down: 0,
    right: 0,
    isMirrored: false,
  });
});
