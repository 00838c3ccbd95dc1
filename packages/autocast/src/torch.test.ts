import { expect, test } from "vitest";
import { DTypeError, resolveCast, torchCastPolicies } from "./index.js";

const region = { enabled: true, dtype: "float16", policies: {} } as const;

const named = (policy: string) =>
  Object.keys(torchCastPolicies).filter((name) => torchCastPolicies[name] === policy);

test("every entry is a policy that resolves, and only binaryCrossEntropy is banned", () => {
  const banned: string[] = [];
  for (const [name, policy] of Object.entries(torchCastPolicies)) {
    expect(name).toMatch(/^_?[a-z][A-Za-z0-9]*$/);
    if (typeof policy === "object") {
      banned.push(name);
      expect(() => resolveCast(policy, ["float16"], region)).toThrow(DTypeError);
      expect(() => resolveCast(policy, ["float16"], region)).toThrow(
        /binaryCrossEntropyWithLogits/,
      );
    } else {
      expect(["float16", "float32"]).toContain(resolveCast(policy, ["float16"], region));
    }
  }
  expect(banned).toEqual(["binaryCrossEntropy"]);
});

test("the lists are as long as torch's (and crossEntropy), so no name is on two of them", () => {
  const sizes = ["lowerPrecision", "float32", "float32Output", "promote"].map(
    (policy) => named(policy).length,
  );
  expect(sizes).toEqual([35, 57, 9, 11]);
  expect(sizes.reduce((sum, size) => sum + size, 1)).toBe(Object.keys(torchCastPolicies).length);
});

test("the ops that AMP is known by", () => {
  const policies = Object.fromEntries(
    [
      "conv2d",
      "linear",
      "matmul",
      "scaledDotProductAttention",
      "layerNorm",
      "crossEntropy",
      "exp",
      "softmax",
      "logSoftmax",
      "sum",
      "addcmul",
      "relu",
      "add",
      "batchNorm",
      "constructor",
    ].map((name) => [name, torchCastPolicies[name] ?? "none"]),
  );
  expect(policies).toEqual({
    conv2d: "lowerPrecision",
    linear: "lowerPrecision",
    matmul: "lowerPrecision",
    scaledDotProductAttention: "lowerPrecision",
    layerNorm: "float32",
    crossEntropy: "float32",
    exp: "float32",
    softmax: "float32Output",
    logSoftmax: "float32Output",
    sum: "float32Output",
    addcmul: "promote",
    relu: "none",
    add: "none",
    batchNorm: "none",
    constructor: "none",
  });
});
