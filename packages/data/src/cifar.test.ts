import { describe, expect, it } from "vitest";
import { readCifar10 } from "./cifar.js";
import { DataError } from "./error.js";

/** A record whose channels are recognisable: red is the pixel's place, green that plus 1, blue that plus 2, modulo 256. */
const record = (label: number): number[] => [
  label,
  ...[0, 1, 2].flatMap((channel) => Array.from({ length: 1024 }, (_, i) => (i + channel) % 256)),
];

describe("CIFAR-10's binary files", () => {
  it("become one channels-last set, in their order", () => {
    const set = readCifar10([
      { name: "a", bytes: Uint8Array.from([...record(3), ...record(9)]) },
      { name: "b", bytes: Uint8Array.from(record(0)) },
    ]);
    expect({ ...set, images: set.images.length }).toEqual({
      images: 3 * 3072,
      labels: Uint8Array.of(3, 9, 0),
      count: 3,
      height: 32,
      width: 32,
      channels: 3,
    });
    expect([...set.images.subarray(3072, 3081)]).toEqual([0, 1, 2, 1, 2, 3, 2, 3, 4]);
  });

  it.each([
    ["nothing", [], "b: has 0 bytes, which are no whole number of CIFAR-10 records of 3073"],
    ["half a record", record(1).slice(0, 2000), "b: has 2000 bytes"],
    ["an eleventh class", [...record(1), ...record(10)], "b: label 10 of record 1 is not below 10"],
  ])("%s is refused", (_, bytes, message) => {
    const read = () => readCifar10([{ name: "b", bytes: Uint8Array.from(bytes) }]);
    expect(read).toThrow(DataError);
    expect(read).toThrow(message);
  });

  it.each([
    [[Uint8Array.from(record(1))], "file 0 is a Uint8Array: pass { name, bytes } for each file"],
    [[{ name: "a", bytes: record(1) }], "file 0 is an Object with bytes that are an array: pass"],
    [[{ bytes: Uint8Array.from(record(1)) }], "file 0 is an Object with bytes that are a Uint8Arr"],
    [Uint8Array.from(record(1)), "file 0 is 1: pass { name, bytes }"],
    [[undefined], "file 0 is undefined: pass"],
    [undefined, "files is undefined: pass an array, and pass { name, bytes }"],
  ])("what are no files is refused: %#", (files, message) => {
    expect(() => readCifar10(files as never)).toThrow(TypeError);
    expect(() => readCifar10(files as never)).toThrow(`readCifar10: ${message}`);
  });
});
