import fc from "fast-check";
import { expect, test } from "vitest";
import { pack2, unpack2 } from "./index.js";

const code = fc.integer({ min: 0, max: 0xffff });

test("two codes share a u32, the first in the low half", () => {
  expect(pack2(0x3c00, 0xbc00)).toBe(0xbc003c00);
  expect(unpack2(0xbc003c00)).toEqual([0x3c00, 0xbc00]);
  fc.assert(
    fc.property(code, code, (first, second) => {
      const word = pack2(first, second);
      expect(word).toBe(new DataView(Uint16Array.of(first, second).buffer).getUint32(0, true));
      expect(unpack2(word)).toEqual([first, second]);
    }),
  );
});

test.each([70_000, -1, 0.5, Number.NaN, "1"])("%s is no 16-bit code", (wrong) => {
  const message = `pack2: ${wrong} is no 16-bit code: pass an integer from 0 to 65535`;
  expect(() => pack2(wrong as number, 1)).toThrow(new RangeError(message));
  expect(() => pack2(1, wrong as number)).toThrow(message);
});
