import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { generate } from "../../../wasm/build.mjs";
import { moduleDigits, pieceLength } from "./module.js";
import { inJavaScript, inWebAssembly, type PieceSums } from "./sums.js";

test("the committed bytes are those that the source gives", async () => {
  expect(readFileSync(new URL("module.ts", import.meta.url), "utf8")).toBe(await generate());
});

test("the module asks for nothing", () => {
  const module = new WebAssembly.Module(Buffer.from(moduleDigits, "hex"));
  expect(WebAssembly.Module.imports(module)).toEqual([]);
});

const number = fc.oneof(
  fc.float(),
  fc.float({ noNaN: true, max: Math.fround(1e-37), min: -Math.fround(1e-37) }),
  fc.constantFrom(0, -0, 2 ** -149, -(2 ** -149), 65504, 3.4028234663852886e38, Infinity),
);
const factor = fc.oneof(
  fc.constantFrom(1, 0.5, 2, 2 ** -126, 2 ** 20, 3, 1e-3),
  fc.integer({ min: -140, max: 140 }).map((exponent) => 2 ** exponent),
  fc.integer({ min: 1, max: 5000 }),
);

/** The mean of multiples of some parts, as an exchange computes it. */
function meanBy(
  { sums, numbers, add, divide }: PieceSums,
  parts: readonly (readonly number[])[],
  factors: readonly number[],
  divisor: number,
): Float32Array {
  const count = (parts[0] as readonly number[]).length;
  sums.fill(0, 0, count);
  for (const [i, part] of parts.entries()) {
    numbers.set(part);
    add(count, factors[i] as number);
  }
  divide(count, divisor);
  return sums.slice(0, count);
}

test("WebAssembly and JavaScript give the bits of float64 arithmetic with one rounding a step", () => {
  const [wasm, javascript] = [inWebAssembly(), inJavaScript()];
  if (!wasm) throw new Error("this engine has no WebAssembly");
  const parts = fc.integer({ min: 1, max: 33 }).chain((length) =>
    fc.array(fc.array(number, { minLength: length, maxLength: length }), {
      minLength: 1,
      maxLength: 4,
    }),
  );
  fc.assert(
    fc.property(parts, fc.array(factor, { minLength: 4, maxLength: 4 }), factor, (p, f, d) => {
      const expected = (p[0] as number[]).map((_, i) => {
        let sum = 0;
        for (const [r, part] of p.entries())
          sum = Math.fround(sum + (part[i] as number) * (f[r] as number));
        return Math.fround(sum / d);
      });
      expect(meanBy(wasm, p, f, d)).toEqual(Float32Array.from(expected));
      expect(meanBy(javascript, p, f, d)).toEqual(Float32Array.from(expected));
    }),
    { seed: 21, numRuns: 2000 },
  );
});

test("a whole piece, and no more, is changed", () => {
  for (const piece of [inWebAssembly(), inJavaScript()]) {
    if (!piece) throw new Error("this engine has no WebAssembly");
    piece.sums.fill(1);
    piece.numbers.fill(2);
    piece.add(pieceLength, 1);
    piece.divide(pieceLength, 3);
    expect(piece.sums.every((sum) => sum === 1)).toBe(true);
    expect(piece.numbers.every((each) => each === 2)).toBe(true);
    expect([piece.sums.length, piece.numbers.length]).toEqual([pieceLength, pieceLength]);
  }
});
