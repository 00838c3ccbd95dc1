import { describe, expect, test } from "vitest";
import {
  type ApexLevel,
  type ApexOverrides,
  apexRecipe,
  autocastRecipe,
  currentRegion,
  jmpRecipe,
  kerasRecipe,
  modulePrecisionOf,
  parsePolicy,
  policyOf,
  policyText,
  RecipeError,
  recipeOf,
  wholeRegion,
  withRecipe,
} from "../index.js";

const messageOf = (fn: () => unknown): string => {
  try {
    fn();
  } catch (error) {
    return error instanceof RecipeError ? error.message : `not a RecipeError: ${error}`;
  }
  return "nothing was thrown";
};

describe("apexRecipe", () => {
  test("the levels are apex's property table", () => {
    const of = (level: ApexLevel) => {
      const { params, casting, keepBatchNormFloat32, masterWeights, lossScale, output, compute } =
        apexRecipe(level);
      return [params, casting, compute, keepBatchNormFloat32, masterWeights, lossScale, output];
    };
    expect(of("O0")).toEqual(["float32", "whole", "float32", true, false, 1, "float32"]);
    expect(of("O1")).toEqual(["float32", "perOp", "float16", true, false, "dynamic", null]);
    expect(of("O2")).toEqual(["float16", "whole", "float16", true, true, "dynamic", "float32"]);
    expect(of("O3")).toEqual(["float16", "whole", "float16", false, false, 1, "float32"]);
  });

  test("arguments replace properties, in the forms that apex's command line gives", () => {
    expect(apexRecipe("O2", { lossScale: "128.0", keepBatchNormFloat32: "False" })).toMatchObject({
      lossScale: 128,
      keepBatchNormFloat32: false,
      masterWeights: true,
    });
    expect(apexRecipe("O3", { lossScale: "dynamic", keepBatchNormFloat32: "True" })).toMatchObject({
      lossScale: "dynamic",
      keepBatchNormFloat32: true,
    });
    expect(apexRecipe("O2", { castModelType: "bfloat16" })).toMatchObject({
      params: "bfloat16",
      compute: "bfloat16",
    });
    expect(apexRecipe("O2", { castModelType: "float32" })).toMatchObject({
      params: "float32",
      masterWeights: false,
    });
    expect(apexRecipe("O3", { castModelOutputs: "float16" }).output).toBe("float16");
    expect(apexRecipe("O1", { castModelType: "float32", lossScale: 64 }).lossScale).toBe(64);
  });

  test.each<[string, string, ApexOverrides, string]>([
    ["a zero for the letter", "00", {}, "there is no optimization level 00: use O0 to O3"],
    ["O1 with a model type", "O1", { castModelType: "float16" }, "castModelType is float16"],
    ["O1 with batch norm", "O1", { keepBatchNormFloat32: "True" }, "keepBatchNormFloat32 is True"],
    [
      "O1 with masters",
      "O1",
      { masterWeights: true },
      "with O1 weights are float32, but masterWeights is true",
    ],
    [
      "O1 without masters",
      "O1",
      { masterWeights: false },
      "with O1 weights are float32, but masterWeights is false",
    ],
    ["a scale that is none", "O2", { lossScale: "big" }, 'lossScale is "big"'],
    ["an empty scale", "O2", { lossScale: "" }, 'lossScale is ""'],
    ["a scale of 0", "O2", { lossScale: 0 }, "lossScale is 0"],
    [
      "a name of apex's",
      "O2",
      { loss_scale: 128 } as ApexOverrides,
      'a level has no "loss_scale": it has',
    ],
    ["a lower-case boolean", "O2", { keepBatchNormFloat32: "true" as "True" }, '"true": it must'],
  ])("refuses %s", (_, level, overrides, message) => {
    expect(messageOf(() => apexRecipe(level as ApexLevel, overrides))).toContain(message);
  });
});

describe("jmpRecipe", () => {
  test.each([
    ["params=float32,compute=float16,output=float32", "float32", "float16", "float32"],
    ["p=f32,c=bf16,o=full", "float32", "bfloat16", "float32"],
    ["c=f16", "float32", "float16", "float16"],
    ["p=f16,c=bf16", "float16", "bfloat16", "bfloat16"],
    ["params=bfloat16", "bfloat16", "bfloat16", "bfloat16"],
    [" output = half , params = full ", "float32", "float32", "float16"],
    ["bf16", "bfloat16", "bfloat16", "bfloat16"],
    ["half", "float16", "float16", "float16"],
  ] as const)("parses %s as jmp.get_policy does", (text, paramDtype, computeDtype, outputDtype) => {
    const policy = { paramDtype, computeDtype, outputDtype };
    expect(parsePolicy(text)).toEqual(policy);
    expect(parsePolicy(policyText(policy))).toEqual(policy);
    expect(jmpRecipe(text)).toMatchObject({
      params: paramDtype,
      compute: computeDtype,
      output: outputDtype,
      casting: "whole",
    });
  });

  test("half is what the caller says", () => {
    expect(parsePolicy("c=half", "bfloat16").computeDtype).toBe("bfloat16");
  });

  test("the loss is scaled where something is float16", () => {
    expect(jmpRecipe("c=f16").lossScale).toBe("dynamic");
    expect(jmpRecipe("c=bf16").lossScale).toBe(1);
  });

  test.each([
    ["weights=f16", 'unknown key "weights"'],
    ["params=f8", 'unknown dtype "f8" in "params=f8"'],
    ["p=f16,params=f32", 'params is given twice in "p=f16,params=f32"'],
    ["constructor", 'unknown dtype "constructor"'],
    ["", 'unknown dtype ""'],
  ])("refuses %j", (text, message) => {
    expect(messageOf(() => jmpRecipe(text))).toContain(message);
  });
});

describe("kerasRecipe", () => {
  test("a policy is a dtype for variables and one for computation", () => {
    const of = (name: "float16" | "mixed_float16" | "mixed_bfloat16") => {
      const { params, compute, lossScale } = kerasRecipe(name);
      return [params, compute, lossScale];
    };
    expect(of("mixed_float16")).toEqual(["float32", "float16", "dynamic"]);
    expect(of("mixed_bfloat16")).toEqual(["float32", "bfloat16", 1]);
    expect(of("float16")).toEqual(["float16", "float16", 1]);
  });

  test("layers have policies of their own", () => {
    const recipe = kerasRecipe({ "": "mixed_float16", fc: "float32", "block.*": "mixed_bfloat16" });
    expect(modulePrecisionOf(recipe, "fc")).toEqual({ dtype: "float32" });
    expect(modulePrecisionOf(recipe, "block.0.conv")).toEqual({ dtype: "bfloat16" });
    expect(modulePrecisionOf(recipe, "conv1")).toBeUndefined();
    expect(messageOf(() => kerasRecipe({ fc: "mixed" as "float32" }))).toContain('"mixed"');
  });
});

test("module patterns name paths and what is below them; the last that matches holds", () => {
  const matches = (pattern: string, path: string): boolean =>
    modulePrecisionOf(recipeOf({ modules: { [pattern]: "float32" } }), path) !== undefined;
  expect(
    [
      ["", ""],
      ["", "fc"],
      ["fc", "fc"],
      ["layer4", "layer4.0.conv1"],
      ["layer4.*", "layer4.1"],
      ["**.bn1", "layer1.0.bn1"],
      ["**.bn1", "bn1"],
      ["*.0", "layer1.0.conv"],
    ].filter(([pattern, path]) => !matches(pattern as string, path as string)),
  ).toEqual([]);
  expect(
    [
      ["fc", "fc2"],
      ["layer4.*", "layer4"],
      ["*.bn1", "layer1.0.bn1"],
      ["fc", ""],
    ].filter(([pattern, path]) => matches(pattern as string, path as string)),
  ).toEqual([]);
  const recipe = recipeOf({ modules: { layer4: "float32", "layer4.0": "bfloat16" } });
  expect(modulePrecisionOf(recipe, "layer4.0.conv")).toEqual({ dtype: "bfloat16" });
});

describe("recipeOf", () => {
  test("names of all families", () => {
    expect(recipeOf("O2")).toEqual(apexRecipe("O2"));
    expect(recipeOf("float16")).toEqual(autocastRecipe("float16"));
    expect(recipeOf("mixed_bfloat16")).toEqual(kerasRecipe("mixed_bfloat16"));
    expect(recipeOf("p=f32,c=f16")).toEqual(jmpRecipe("p=f32,c=f16"));
  });

  test("a file extends a name, and every recipe survives JSON", () => {
    const recipe = recipeOf(
      JSON.parse(
        '{"extends":"O2","name":"mine","lossScale":128,"modules":{"fc":"float32"},"policies":{"softmax":"float32","bce":{"banned":"No."}}}',
      ),
    );
    expect(recipe).toEqual({
      ...apexRecipe("O2"),
      name: "mine",
      lossScale: 128,
      modules: { fc: { dtype: "float32" } },
      policies: { softmax: "float32", bce: { banned: "No." } },
    });
    for (const name of ["float32", "float16", "O0", "O1", "O2", "O3", "mixed_float16", "c=bf16"]) {
      const made = recipeOf(name);
      expect(recipeOf(JSON.parse(JSON.stringify(made)))).toEqual(made);
    }
  });

  test.each<[unknown, string]>([
    ["O4", 'there is no recipe "O4"'],
    [7, "a recipe is 7: it must be a name such as"],
    [null, "a recipe is null"],
    [["O2"], 'a recipe is ["O2"]: it must be a name'],
    [{ extends: 1 }, "there is no recipe 1"],
    [{ param: "float16" }, 'a recipe has no "param": it has extends, name, params'],
    [{ params: "float8" }, 'params is "float8": it must be "float32", "float16", "bfloat16"'],
    [{ masterWeights: "yes" }, 'masterWeights is "yes"'],
    [{ lossScale: -1 }, "lossScale is -1"],
    [{ lossScale: null }, "lossScale is null"],
    [{ name: "" }, 'name is "": it must be a text'],
    [{ modules: [] }, "modules is []: it must be an object"],
    [{ modules: { fc: { dtype: "int8" } } }, 'modules["fc"].dtype is "int8"'],
    [{ modules: { fc: { type: "float16" } } }, 'modules["fc"] has no "type"'],
    [{ policies: { softmax: "half" } }, 'policies["softmax"] is "half"'],
    [JSON.parse('{"__proto__": {"params": "float16"}}'), 'a recipe has no "__proto__"'],
  ])("refuses %j", (given, message) => {
    expect(messageOf(() => recipeOf(given))).toContain(message);
  });
});

describe("regions of recipes", () => {
  test("withRecipe opens a region only where ops are cast one by one", () => {
    const regionOf = (name: string) => withRecipe(recipeOf(name), () => currentRegion());
    expect(regionOf("O1")).toEqual({ enabled: true, dtype: "float16", policies: {} });
    expect(regionOf("bfloat16")).toMatchObject({ enabled: true, dtype: "bfloat16" });
    expect(regionOf("O2")).toMatchObject({ enabled: false });
    expect(regionOf("float32")).toMatchObject({ enabled: false });
  });

  test("a whole region decides for every op but batch norm, and for the policies given", () => {
    const region = wholeRegion("bfloat16", { softmax: "float32" });
    const policies = ["exp", "matmul", "batchNorm", "softmax"].map((name) =>
      policyOf({ name, castPolicy: "promote" }, {
        ...region,
        enabled: true,
        dtype: "bfloat16",
      } as never),
    );
    expect(policies).toEqual(["lowerPrecision", "lowerPrecision", "none", "float32"]);
    expect(wholeRegion("float32").policies).toEqual({ "*": "float32" });
  });
});
