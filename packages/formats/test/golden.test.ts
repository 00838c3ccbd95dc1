import { expect, test } from "vitest";
import { float16 } from "../src/index.js";
import golden from "./golden/float16.json" with { type: "json" };

test("float16 equals numpy on float64 inputs around every kind of tie", () => {
  const rows = golden as [bits: string, code: number][];
  const view = new DataView(new ArrayBuffer(8));
  const mismatches = rows.filter(([bits, code]) => {
    view.setBigUint64(0, BigInt(`0x${bits}`));
    return float16.encode(view.getFloat64(0)) !== code;
  });
  expect(rows.length).toBeGreaterThan(1000);
  expect(mismatches).toEqual([]);
});
