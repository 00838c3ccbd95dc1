import { describe, expect, it } from "vitest";
import type { IdxArray } from "./idx.js";
import {
  gatherImages,
  gatherLabels,
  type ImageSet,
  imageSet,
  normalizationOf,
  normalizedBytes,
} from "./images.js";

const images: IdxArray = {
  dtype: "uint8",
  shape: [3, 1, 2],
  data: new Uint8Array([0, 51, 102, 153, 204, 255]),
};
const labels: IdxArray = { dtype: "uint8", shape: [3], data: new Uint8Array([7, 8, 9]) };
const set = imageSet({ name: "i", idx: images }, { name: "l", idx: labels }, 10);

describe("imageSet", () => {
  it("pairs images with labels", () => {
    expect(set).toEqual({
      images: images.data,
      labels: labels.data,
      count: 3,
      height: 1,
      width: 2,
      channels: 1,
    });
  });

  it.each([
    [
      "labels for images",
      labels,
      labels,
      "i: holds uint8 [3] where images, uint8 [count, height, width]",
    ],
    ["images for labels", images, images, "l: holds uint8 [3,1,2] where labels, uint8 [count]"],
    [
      "another count",
      images,
      { ...labels, shape: [2], data: new Uint8Array([1, 2]) } as IdxArray,
      "l: has 2 labels for 3 images in i",
    ],
    [
      "a label out of range",
      images,
      { ...labels, data: new Uint8Array([1, 10, 2]) } as IdxArray,
      "l: label 10 at 1 is not below 10",
    ],
  ])("refuses %s", (_, first, second, message) => {
    expect(() => imageSet({ name: "i", idx: first }, { name: "l", idx: second }, 10)).toThrow(
      message,
    );
  });
});

describe("gathering", () => {
  it("takes images in the order asked for, normalised", () => {
    const gathered = gatherImages(set, [2, 0], { mean: 0.5, std: 0.5 });
    expect([...gathered]).toEqual([0.6, 1, -1, -0.6].map((value) => Math.fround(value)));
    expect([...gatherImages(set, [1])]).toEqual([0.4, 0.6].map((value) => Math.fround(value)));
  });

  it("normalises every channel by its own mean and deviation", () => {
    const colored: ImageSet = {
      ...set,
      images: Uint8Array.of(0, 51, 255, 255, 102, 0),
      labels: Uint8Array.of(0, 1),
      count: 2,
      width: 1,
      channels: 3,
    };
    const gathered = gatherImages(colored, [1, 0], { mean: [0, 0.2, 0.5], std: [1, 0.1, 0.5] });
    expect([...gathered]).toEqual([1, 2, -1, 0, 0, 1].map((value) => expect.closeTo(value, 6)));
    expect(() => gatherImages(colored, [0], { mean: [0, 0], std: 1 })).toThrow("2 values of mean");
    const { mean, std } = normalizationOf(colored);
    expect(mean).toEqual([0.5, 0.3, 0.5].map((value) => expect.closeTo(value, 12)));
    expect(std).toEqual([0.5, 0.1, 0.5].map((value) => expect.closeTo(value, 12)));
    expect(normalizationOf({ images: Uint8Array.of(9, 9), channels: 1 }).std).toEqual([1]);
    expect(normalizedBytes({ mean: 0, std: 1 }, 2)).toHaveLength(512);
  });

  it("takes labels as uint32", () => {
    expect(gatherLabels(set, Uint32Array.of(2, 0, 2))).toEqual(Uint32Array.of(9, 7, 9));
  });

  it("fills the front of a longer array", () => {
    const into = new Float32Array(5).fill(-1);
    expect(gatherImages(set, [2], { mean: 0, std: 1 }, into)).toBe(into);
    expect([...into]).toEqual([Math.fround(0.8), 1, -1, -1, -1]);
  });

  it.each([3, -1, 0.5])("refuses index %s", (index) => {
    expect(() => gatherImages(set, [index])).toThrow("is not in a set of 3");
    expect(() => gatherLabels(set, [index])).toThrow("is not in a set of 3");
  });

  it("refuses an array that is too short", () => {
    expect(() => gatherImages(set, [0, 1], undefined, new Float32Array(3))).toThrow(RangeError);
    expect(() => gatherLabels(set, [0, 1], new Uint32Array(1))).toThrow(RangeError);
  });
});

describe("wrong arguments", () => {
  const gather = gatherImages as unknown as (...given: unknown[]) => unknown;
  const labelled = gatherLabels as unknown as (...given: unknown[]) => unknown;

  it.each([
    [{ mean: 0, std: 0 }, "std is 0: it must be a positive finite number"],
    [{ mean: 0, std: [0] }, "std is 0: it must be a positive finite number"],
    [{ mean: 0, std: Number.NaN }, "std is NaN: it must be a positive finite number"],
    [{ mean: Number.NaN, std: 1 }, "mean is NaN: it must be a finite number"],
    [{ mean: ["0"], std: 1 }, 'mean is "0": it must be a finite number'],
    [{ mean: 0 }, "std is undefined: pass { mean, std }, each a number or one for each channel"],
    [{ mean: "0", std: 1 }, 'mean is "0": pass { mean, std }'],
    [null, "mean is undefined: pass { mean, std }"],
  ])("%j normalises nothing", (normalization, message) => {
    expect(() => gather(set, [0], normalization)).toThrow(message);
  });

  it.each([
    new Uint8Array(9),
    new Float64Array(9),
    [0, 0, 0],
    new DataView(new ArrayBuffer(9)),
    {},
  ])("%o is no array to fill", (into) => {
    const kind = Array.isArray(into) ? "an array" : /an? \w+/;
    expect(() => gather(set, [0], undefined, into)).toThrow(TypeError);
    expect(() => gather(set, [0], undefined, into)).toThrow(kind);
    expect(() => gather(set, [0], undefined, into)).toThrow("pass a Float32Array, or leave it out");
    expect(() => labelled(set, [0], into)).toThrow("pass a Uint32Array, or leave it out");
  });

  it("that are no set or no indices are refused", () => {
    for (const [call, name] of [
      [gather, "gatherImages"],
      [labelled, "gatherLabels"],
    ] as const) {
      expect(() => call(set)).toThrow(
        `${name}: indices is undefined: pass an array of indices, such as a batch of a sampler`,
      );
      expect(() => call(set, "01")).toThrow(`${name}: indices is "01": pass`);
      expect(() => call(undefined, [0])).toThrow(
        `${name}: the set is undefined: pass what imageSet() or a reader returned`,
      );
    }
  });
});
