import { expect, test } from "vitest";
import { currentOf, pageFields } from "../formats/page-state.js";
import { configFields } from "../train/config.js";
import { readState, strangePartsOf, writeState } from "./url-state.js";

const initial = readState(pageFields, "");

test("the initial state has no query", () => {
  expect(writeState(pageFields, initial)).toBe("");
});

test("a state comes back from its query", () => {
  const state = { ...initial, format: "bfloat16", value: -0, scale: 12, bits: "01" } as const;
  const query = writeState(pageFields, { ...state, bits: "0".repeat(16) });
  expect(readState(pageFields, query)).toEqual({ ...state, bits: "0".repeat(16) });
  for (const value of [Number.NaN, Infinity, 1e-300, 1 / 3]) {
    expect(readState(pageFields, writeState(pageFields, { ...initial, value })).value).toBe(value);
  }
});

test("what makes no sense has its initial value", () => {
  expect(
    readState(pageFields, "?format=constructor&value=&n=1.5&scale=99&seed=x&bits=012&zoom=1"),
  ).toEqual(initial);
});

test("bits that do not fit the format are left out", () => {
  const bits = "1".repeat(16);
  expect(currentOf({ ...initial, bits }).wished).toBeNaN();
  expect(currentOf({ ...initial, bits, format: "float32" }).wished).toBe(0.1);
});

test("what an address says in vain is named: impossible, repeated, in another case, very long", () => {
  const search =
    "?format=nope&FORMAT=float16&n=1e9&seed=-1&scale=&value=1&value=2&__proto__=x&zoom=training&fbclid=1";
  expect(strangePartsOf(pageFields, search)).toEqual([
    "format=nope",
    "FORMAT=float16",
    "n=1e9",
    "seed=-1",
    "scale=",
    "value=2",
  ]);
  expect(strangePartsOf(pageFields, writeState(pageFields, initial))).toEqual([]);
  const [long = ""] = strangePartsOf(pageFields, `?n=${"9".repeat(10_000)}`);
  expect(long).toHaveLength(41);
});

test("setups that are unknown or too many are said in vain", () => {
  const all = "float32.float16.bfloat16.float16-fixed.float16-unscaled";
  for (const text of [all, "float32.float12", "", "float16."]) {
    expect(strangePartsOf(configFields, `?setups=${text}`), text).toHaveLength(1);
  }
  expect(strangePartsOf(configFields, "?setups=bfloat16.float32")).toEqual([]);
});
