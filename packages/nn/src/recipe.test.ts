import { apexRecipe, autocast, type Recipe, recipeOf, withRecipe } from "@halfstep/autocast";
import { cpuRuntime, type Tensor, traceOps } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  applyRecipe,
  BatchNorm2d,
  Conv2d,
  castReason,
  explain,
  Flatten,
  Generator,
  Linear,
  ReLU,
  Sequential,
} from "./index.js";

const runtime = cpuRuntime();

function small(): Sequential {
  const generator = new Generator(1);
  return new Sequential(
    new Conv2d(runtime, 1, 2, { kernelSize: 3, generator }),
    new BatchNorm2d(runtime, 2),
    new ReLU(),
    new Flatten(),
    new Linear(runtime, 8, 3, { generator }),
  );
}

const images = (): Tensor =>
  runtime.tensor(
    Float32Array.from({ length: 32 }, (_, i) => Math.sin(i)),
    [2, 4, 4, 1],
  );

const storage = (model: Sequential): Record<string, string> =>
  Object.fromEntries(
    [...model.namedParameters(), ...model.namedBuffers()].map(([path, { dtype }]) => [path, dtype]),
  );

/** The dtype that each op of the forward pass runs in, and that of the result. */
function dtypesUnder(model: Sequential, recipe: Recipe): Record<string, string> {
  const seen: Record<string, string> = {};
  const result = traceOps(
    ({ op, cast }) => {
      if (op !== "add") seen[op] = cast[0] as string;
    },
    () => withRecipe(recipe, () => model.forward(images())),
  );
  return { ...seen, result: result.dtype };
}

test("parameters are stored as the recipe says, exceptions and batch norm included", () => {
  const all = [
    "0.weight",
    "0.bias",
    "1.weight",
    "1.bias",
    "4.weight",
    "4.bias",
    "1.runningMean",
    "1.runningVar",
  ];
  const stored = (recipe: Recipe): string =>
    all.map((path) => storage(applyRecipe(small(), recipe))[path]?.replace(/\D+/, "")).join(" ");
  expect(stored(apexRecipe("O1"))).toBe("32 32 32 32 32 32 32 32");
  expect(stored(apexRecipe("O2"))).toBe("16 16 32 32 16 16 32 32");
  expect(stored(apexRecipe("O3"))).toBe("16 16 16 16 16 16 32 32");
  expect(stored(recipeOf({ extends: "O2", modules: { 4: "float32" } }))).toBe(
    "16 16 32 32 32 32 32 32",
  );
  expect(stored(recipeOf("p=bf16,c=bf16"))).toBe("16 16 16 16 16 16 32 32");
  expect(stored(recipeOf("mixed_float16"))).toBe("32 32 32 32 32 32 32 32");
});

test("ops and results have the dtypes that the recipe says", () => {
  const under = (given: unknown): Record<string, string> => {
    const recipe = recipeOf(given);
    return dtypesUnder(applyRecipe(small(), recipe), recipe);
  };
  const of = (conv2d: string, batchNorm: string, relu: string, linear: string, result: string) => ({
    conv2d,
    batchNorm,
    relu,
    linear,
    result,
  });
  const [f, h, b] = ["float32", "float16", "bfloat16"] as const;
  expect(under("O0")).toEqual(of(f, f, f, f, f));
  expect(under("O1")).toEqual(of(h, h, h, h, h));
  expect(under("O2")).toEqual(of(h, h, h, h, f));
  expect(under("O3")).toEqual(of(h, h, h, h, f));
  expect(under("mixed_bfloat16")).toEqual(of(b, b, b, b, b));
  expect(under("p=f32,c=f16,o=f32")).toEqual(of(h, h, h, h, f));
  expect(under({ extends: "O2", modules: { 4: "float32" } })).toEqual(of(h, h, h, f, f));
  expect(under({ extends: "O1", policies: { relu: "float32" } })).toEqual(of(h, h, f, h, h));
  expect(under({ extends: "O1", modules: { 0: { policies: { conv2d: "float32" } } } })).toEqual(
    of(f, f, f, h, h),
  );
  expect(under({ modules: { "4": "float16" } })).toEqual(of(f, f, f, h, h));
});

test("under O2 no weight is cast: only the input and the result", async () => {
  const recipe = apexRecipe("O2");
  const model = applyRecipe(small(), recipe);
  await runtime.step(() => withRecipe(recipe, () => model.forward(images())));
  expect(runtime.lastPlan?.statistics.recordedCasts).toBe(2);
  const cast = apexRecipe("O1");
  const other = small();
  await runtime.step(() => withRecipe(cast, () => other.forward(images())));
  // The input, and weight and bias of two layers.
  expect(runtime.lastPlan?.statistics.recordedCasts).toBe(5);
});

test("a second recipe replaces the first, and the model is as it was under float32", async () => {
  const model = small();
  const before = await model.forward(images()).toArray();
  applyRecipe(model, recipeOf("mixed_bfloat16"));
  expect(model.forward(images()).dtype).toBe("bfloat16");
  applyRecipe(model, recipeOf("float32"));
  expect(await model.forward(images()).toArray()).toEqual(before);
  expect(autocast({ dtype: "float16" }, () => model.forward(images()).dtype)).toBe("float16");
});

test("explain tells each op's dtype and reason, and changes nothing", async () => {
  const model = small();
  const before = [await model.stateDict(), storage(model)];
  const recipe = recipeOf({
    extends: "O2",
    modules: { 4: "float32" },
    policies: { relu: "none" },
  });
  expect(explain(recipe, model, images())).toBe(
    `O2: parameters float16 (batch norm float32), all ops float16, results float32, float32 masters, loss scale dynamic

module           op         arguments                  runs in  why
0 (Conv2d)       conv2d     float16, float16           float16  the whole model runs in float16
0 (Conv2d)       add        float16, float16           float16  the whole model runs in float16
1 (BatchNorm2d)  batchNorm  float16, float32, float32  float16  runs as its arguments are
2 (ReLU)         relu       float16                    float16  the recipe's policy: none
4 (Linear)       linear     float16, float32, float32  float32  exception for this module: float32`,
  );
  expect([await model.stateDict(), storage(model)]).toEqual(before);
  expect(model.forward(images()).dtype).toBe("float32");
});

test("explain looks through a recipe that has been applied", () => {
  const model = applyRecipe(small(), apexRecipe("O3"));
  const text = explain(recipeOf("O1"), model, images());
  expect(text).toContain(
    "O1: parameters float32, ops by their policies in float16, loss scale dynamic",
  );
  expect(text).toContain(
    "0 (Conv2d)       conv2d     float32, float32           float16  products and convolutions are lowered",
  );
  expect(model.forward(images()).dtype).toBe("float32");
  expect(storage(model)["0.weight"]).toBe("float16");
});

test("launches of a plan have the reasons that explain gives", () => {
  const recipe = recipeOf("O1");
  const model = small();
  const x = images();
  const { launches } = runtime.plan(() => {
    withRecipe(recipe, () => model.forward(x))
      .sum()
      .backward();
  });
  const reasons = launches.flatMap(({ note }) =>
    (note?.ops ?? []).flatMap((op) =>
      op.decision ? [[op.op, castReason(recipe, op, op.decision)]] : [],
    ),
  );
  expect(reasons).toContainEqual(["conv2d", "products and convolutions are lowered"]);
  expect(reasons).toContainEqual(["batchNorm", "runs as its arguments are"]);
  expect(reasons).toContainEqual(["reluBackward", "gradients have the dtype of their values"]);
});

test("a model whose inputs are not known is explained by modules", () => {
  expect(explain(recipeOf({ extends: "O2", modules: { 4: "float32" } }), small())).toBe(
    `O2: parameters float16 (batch norm float32), all ops float16, results float32, float32 masters, loss scale dynamic

module           parameters  ops
0 (Conv2d)       float16     float16
1 (BatchNorm2d)  float32     float16
4 (Linear)       float32     float32`,
  );
});

test("an exception for a module that the model lacks is refused, and nothing changes", () => {
  const model = small();
  const under = (modules: object) => () =>
    applyRecipe(model, recipeOf({ extends: "O2", modules } as never));
  expect(under({ "nothing.here": "float32" })).toThrow(
    'the recipe has an exception for "nothing.here", which no module of Sequential matches: it has 0, 1, 2, 3, 4',
  );
  class Net extends Sequential {
    readonly classifier: Linear = new Linear(runtime, 2, 2, { generator: new Generator(1) });
  }
  const misspelt = recipeOf({ extends: "O2", modules: { clasifier: "float32" } });
  expect(() => applyRecipe(new Net(), misspelt)).toThrow('the nearest is "classifier"');
  expect(() => explain(misspelt, new Net())).toThrow('the nearest is "classifier"');
  expect(under({ "5.*": "float32", "4": "float32" })).toThrow('"5.*"');
  expect(storage(model)["0.weight"]).toBe("float32");
  expect(under({ "*": "float32" })).not.toThrow();
  expect(() => applyRecipe(model, "O2" as never)).toThrow(
    'applyRecipe(model, recipe): recipe is "O2"; pass a recipe, such as recipeOf("O2")',
  );
  expect(() => applyRecipe({} as never, misspelt)).toThrow("model is an object; pass a module");
});
