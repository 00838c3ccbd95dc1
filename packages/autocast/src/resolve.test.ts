import { describe, expect, test } from "vitest";
import {
  type AutocastRegion,
  autocast,
  type CastPolicy,
  currentRegion,
  DTypeError,
  policyOf,
  resolveCast,
  withoutAutocast,
} from "./index.js";

const float16: AutocastRegion = { enabled: true, dtype: "float16", policies: {} };
const bfloat16: AutocastRegion = { enabled: true, dtype: "bfloat16", policies: {} };
const disabled: AutocastRegion = { enabled: false, policies: {} };

test.each<[CastPolicy, string[], AutocastRegion, string | undefined]>([
  ["lowerPrecision", ["float32", "float32"], float16, "float16"],
  ["lowerPrecision", ["float32", "float32"], bfloat16, "bfloat16"],
  // torch casts the other half format too.
  ["lowerPrecision", ["bfloat16", "float32"], float16, "float16"],
  ["lowerPrecision", ["float32", "int32"], float16, "float16"],
  ["float32", ["float16"], float16, "float32"],
  ["float32", ["bfloat16", "float16"], float16, "float32"],
  ["float32", ["float32"], float16, "float32"],
  ["float32Output", ["float16"], float16, "float32"],
  ["promote", ["float16", "float32"], float16, "float32"],
  ["promote", ["bfloat16", "float32", "float16"], float16, "float32"],
  ["promote", ["float16", "float16"], float16, "float16"],
  ["promote", ["bfloat16", "bfloat16"], float16, "bfloat16"],
  ["promote", ["float16", "int32", "float64"], float16, "float16"],
  ["none", ["float16", "float32"], float16, undefined],
])("%s of %j", (policy, dtypes, region, expected) => {
  expect(resolveCast(policy, dtypes, region)).toBe(expected);
});

describe.each<CastPolicy>([
  "lowerPrecision",
  "float32",
  "float32Output",
  "promote",
  "none",
  { banned: "Use another op." },
])("policy %j", (policy) => {
  test.each([[disabled], [undefined]])("casts nothing in region %j", (region) => {
    const resolved = [["float16"], ["float32"], ["float16", "bfloat16"], ["int32"], []].map(
      (dtypes) => resolveCast(policy, dtypes, region),
    );
    expect(resolved.every((dtype) => dtype === undefined)).toBe(true);
  });

  test("never casts float64, integers or booleans", () => {
    if (typeof policy === "object") {
      expect(() => resolveCast(policy, ["float64"], float16)).toThrow("Use another op.");
    } else {
      for (const dtypes of [["float64"], ["int32", "uint32"], ["bool"], []]) {
        expect(resolveCast(policy, dtypes, float16)).toBeUndefined();
      }
    }
  });
});

test("promoting float16 with bfloat16 is refused in a region, with the remedy", () => {
  const promote = () => resolveCast("promote", ["float16", "bfloat16"], bfloat16);
  expect(promote).toThrow(DTypeError);
  expect(promote).toThrow(/float16 and bfloat16 do not promote.*cast one of the inputs first/);
});

test("a banned op throws its remedy", () => {
  const banned = { banned: "sqrtOfNegative has no result: use abs first" };
  expect(() => resolveCast(banned, ["float32"], float16)).toThrow(DTypeError);
  expect(() => resolveCast(banned, ["float32"], float16)).toThrow(banned.banned);
});

test("an unknown policy is named", () => {
  expect(() => resolveCast("fp16" as CastPolicy, ["float32"], float16)).toThrow(
    /unknown cast policy "fp16": use lowerPrecision/,
  );
});

test("overrides by op name: innermost first, then outer ones, then the op's own", () => {
  const softmax = { name: "softmax", castPolicy: "float32Output" } as const;
  const matmul = { name: "matmul", castPolicy: "lowerPrecision" } as const;
  const at = () => [softmax, matmul].map((op) => policyOf(op, currentRegion()));
  expect(at()).toEqual(["float32Output", "lowerPrecision"]);
  autocast({ dtype: "float16", policies: { softmax: "lowerPrecision", matmul: "none" } }, () => {
    expect(at()).toEqual(["lowerPrecision", "none"]);
    autocast({ dtype: "bfloat16", policies: { softmax: "none" } }, () => {
      expect(at()).toEqual(["none", "none"]);
    });
    withoutAutocast(() => {
      autocast({ dtype: "float16" }, () => expect(at()).toEqual(["lowerPrecision", "none"]));
    });
    expect(at()).toEqual(["lowerPrecision", "none"]);
  });
});

test("names that objects inherit are no overrides", () => {
  const op = { name: "constructor", castPolicy: "float32" } as const;
  autocast({ dtype: "float16", policies: { matmul: "none" } }, () => {
    expect(policyOf(op, currentRegion())).toBe("float32");
  });
});

test("DTypeError is recognised by its brand, whichever copy threw it", () => {
  const foreign = Object.assign(new TypeError("from another copy"), {
    [Symbol.for("@halfstep/DTypeError")]: true,
  });
  expect(foreign instanceof DTypeError).toBe(true);
  expect(new TypeError("plain") instanceof DTypeError).toBe(false);
  expect(new DTypeError("x")).toMatchObject({ name: "DTypeError", message: "x" });
});
