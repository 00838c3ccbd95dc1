import { expect, it } from "vitest";
import { type Counter, type Key, philox4x32 } from "./philox.js";

const all = 0xffffffff;

// From Random123's kat_vectors.
it.each<[Counter, Key, Counter]>([
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [all, all, all, all],
    [all, all],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
])("gives the known answer for counter %j and key %j", (counter, key, expected) => {
  expect(philox4x32(counter, key)).toEqual(expected);
});
