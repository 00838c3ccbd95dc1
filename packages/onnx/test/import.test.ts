import { readFileSync } from "node:fs";
import { autocast, recipeOf } from "@halfstep/autocast";
import { applyRecipe, explainOps } from "@halfstep/nn";
import { noGrad, type Tensor } from "@halfstep/tensor";
import { describe, expect, test } from "vitest";
import { auditHalf, fromOnnx, OnnxError, toOnnx } from "../src/index.js";
import { cases, runtime } from "./cases.js";
import { runOnnx } from "./session.js";

interface Numbers {
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

type Golden = Record<
  string,
  { readonly inputs: Record<string, Numbers>; readonly logits: Numbers }
>;
const goldenIn = (name: string): Golden =>
  JSON.parse(readFileSync(new URL(`golden/${name}.json`, import.meta.url), "utf8"));
const golden = {
  ...goldenIn("graphs"),
  ...goldenIn("more-graphs"),
  ...goldenIn("transformers"),
};
const bytesOf = (name: string): Uint8Array =>
  readFileSync(new URL(`golden/${name}.onnx`, import.meta.url));
const inputsOf = (name: string): Record<string, Tensor> =>
  Object.fromEntries(
    Object.entries(golden[name]?.inputs ?? {}).map(([key, { shape, values }]) => [
      key,
      runtime.tensor(
        key === "images" ? Float32Array.from(values) : Uint32Array.from(values),
        shape,
      ),
    ]),
  );

/** The largest difference, in terms of the largest number. */
async function error(result: Tensor | undefined, wanted: ArrayLike<number>): Promise<number> {
  const found = await (result as Tensor).to("float32").toArray();
  expect(found.length).toBe(wanted.length);
  const largest = Math.max(...Array.from(wanted, Math.abs));
  return Math.max(...Array.from(found, (x, i) => Math.abs(x - (wanted[i] as number)))) / largest;
}

const names: (readonly [name: string, opset: number])[] = [
  ...["resnet", "bert", "gpt2"].flatMap((name) => [[name, 13] as const, [name, 17] as const]),
  ...["enlarged", "sequences", "encoder", "decoder"].map((name) => [name, 17] as const),
];

describe.each(names)("%s of torch, opset %d", (name, opset) => {
  const model = fromOnnx(runtime, bytesOf(`${name}-${opset}`));
  const inputs = inputsOf(name);
  const { values = [] } = golden[name]?.logits ?? {};

  test("computes what torch did", async () => {
    const { logits } = noGrad(() => model.forward(inputs));
    expect(logits?.shape).toEqual(golden[name]?.logits.shape);
    expect(await error(logits, values)).toBeLessThan(2e-6);
    const stepped = await runtime.step(() => noGrad(() => model.forward(inputs)));
    expect(await error(stepped.logits, values)).toBeLessThan(2e-6);
  });

  test("computes near it in half precision", async () => {
    const { logits } = noGrad(() =>
      autocast({ dtype: "float16" }, () => model.forward(inputs)),
    ) as unknown as { readonly logits: Tensor };
    expect(await error(logits, values)).toBeLessThan(1e-2);
  });
});

test.each(Object.entries(cases))("%s comes back from its own file", async (_, make) => {
  const { model, example, given, feeds, options } = make();
  model.eval();
  for (const recipe of [recipeOf("float32"), recipeOf("O1")]) {
    const bytes = await toOnnx(model, example, { ...options, recipe, opset: 21 });
    const read = fromOnnx(runtime, bytes);
    const [found] = Object.values(noGrad(() => read.forward(feeds)));
    const wanted = noGrad(() => model.forward(...(given as never[]))) as Tensor;
    const tolerance = recipe.compute === "float32" ? 2e-6 : 6e-3;
    expect(await error(found, await wanted.toArray())).toBeLessThan(tolerance);
  }
});

test("recipes and explanations name operators by their paths", () => {
  const model = fromOnnx(runtime, bytesOf("resnet-17"));
  const ops = explainOps(recipeOf("O2"), model, inputsOf("resnet"));
  const conv = ops.find(({ op }) => op === "conv2d");
  expect([conv?.path, conv?.runsIn]).toEqual(["nodes.conv1/Conv", "float16"]);
  expect([...model.namedParameters()].map(([path]) => path)).toContain("nodes.fc/Gemm.weights.1");
});

describe("the audit", () => {
  const inputs = inputsOf("bert");

  test("keeps nothing where a graph computes the same in halves", async () => {
    const { keep, errors, nodes } = await auditHalf(fromOnnx(runtime, bytesOf("bert-17")), inputs);
    expect(keep).toEqual([]);
    expect(errors.logits?.all).toBeLessThan(0.01);
    // The mask's least float32 is −∞ in float16.
    expect(nodes.filter(({ lost }) => lost > 0).length).toBeGreaterThan(0);
  });

  test("finds squares beyond float16, and its recipe runs the graph in halves", async () => {
    // Here the norm is made of single operators.
    const model = fromOnnx(runtime, bytesOf("bert-13"));
    const words = [...model.parameters()].find(({ shape }) => shape.join() === "30,8");
    words?.assign(words.mul(3000));
    const { nodes, keep, errors, recipe } = await auditHalf(model, inputs);
    const kept = nodes.filter(({ name }) => keep.includes(name)).map(({ operator }) => operator);
    expect(kept).toContain("Pow");
    expect(kept).toContain("ReduceMean");
    expect(keep.length).toBeLessThan(nodes.length / 4);
    // Without NaN: the variance is infinite, and the result is the bias.
    expect(errors.logits?.all).toBeGreaterThan(0.5);
    expect(errors.logits?.kept).toBeLessThan(0.02);
    const { logits: exact } = noGrad(() => model.forward(inputs));
    const wanted = await (exact as Tensor).toArray();
    applyRecipe(model, recipe);
    const { logits } = noGrad(() => model.forward(inputs));
    expect(logits?.dtype).toBe("float32");
    expect(await error(logits, wanted)).toBeLessThan(0.03);
  });
});

test.each(["bert", "gpt2", "encoder", "decoder", "sequences"])(
  "%s is written again, with the numbers of its file",
  async (name) => {
    const inputs = inputsOf(name);
    const bytes = await toOnnx(fromOnnx(runtime, bytesOf(`${name}-17`)), [inputs], { axes: {} });
    const { values = [] } = golden[name]?.logits ?? {};
    const [logits] = Object.values(await runOnnx(bytes, inputs));
    const largest = Math.max(...values.map(Math.abs));
    const far = logits?.values.map((x, i) => Math.abs(x - (values[i] as number))) ?? [];
    expect(Math.max(...far) / largest).toBeLessThan(2e-6);
  },
);

test("wrong inputs are refused", () => {
  const model = fromOnnx(runtime, bytesOf("gpt2-17"));
  expect(() => model.forward({})).toThrow('the graph needs "input_ids": its inputs are input_ids');
  const vector = runtime.tensor(Uint32Array.of(1, 2));
  expect(() => model.forward({ input_ids: vector })).toThrow(OnnxError);
  const input_ids = runtime.tensor(Uint32Array.of(1, 2), [1, 2]);
  expect(() => model.forward({ input_ids, mask: vector })).toThrow(
    'the graph has no input "mask": its inputs are input_ids',
  );
  expect(() => model.forward({ input_ids: input_ids.to("float32") })).toThrow(
    '"input_ids" is INT64 in the graph, not float32',
  );
});
