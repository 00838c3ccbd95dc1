import { readFileSync } from "node:fs";
import { recipeOf, withRecipe } from "@halfstep/autocast";
import { cpuRuntime, noGrad, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import {
  applyRecipe,
  Generator,
  Linear,
  Lora,
  Module,
  StateDictError,
  type TorchLayout,
} from "./index.js";

const golden: Readonly<Record<string, readonly number[]>> = JSON.parse(
  readFileSync(new URL("../test/golden/lora.json", import.meta.url), "utf8"),
);
const close = (found: ArrayLike<number>, expected: readonly number[] = []): void => {
  expect(found).toHaveLength(expected.length);
  for (const [i, value] of expected.entries()) expect(found[i]).toBeCloseTo(value, 5);
};
const state = (data: readonly number[] = [], shape: readonly number[] = []) => ({
  ...{ shape, dtype: "float32" as const, data: Float32Array.from(data) },
});

/** Two layers, one of which GPT-2 has the other way round. */
class Model extends Module {
  readonly cAttn: Linear;
  readonly head: Linear;

  constructor(runtime = cpuRuntime()) {
    super();
    const generator = new Generator(1);
    this.cAttn = new Linear(runtime, 6, 3, { generator });
    this.head = new Linear(runtime, 3, 2, { generator });
  }

  override get torchLayout(): TorchLayout {
    return { names: { cAttn: "c_attn" } };
  }

  forward(x: Tensor): Tensor {
    return this.head.forward(this.cAttn.forward(x));
  }
}

const inPeft = (a = golden.a, b = golden.b) => ({
  "base_model.model.c_attn.lora_A.weight": state(a, [2, 6]),
  "base_model.model.c_attn.lora_B.weight": state(b, [3, 2]),
});
const options = { rank: 2, alpha: 6, targets: ["c_attn"], seed: 3 };

test("result and gradients are those of PEFT's formula in torch", async () => {
  const runtime = cpuRuntime();
  const model = new Model(runtime);
  const { cAttn } = model;
  cAttn.loadStateDict({ weight: state(golden.weight, [3, 6]), bias: state(golden.bias, [3]) });
  const lora = new Lora(model, options);
  lora.loadTorchStateDict(inPeft());
  const gradients = await runtime.step(() => {
    const y = cAttn.forward(runtime.tensor(golden.x as number[], [4, 6]));
    y.mul(runtime.tensor(golden.factors as number[], [4, 3]))
      .sum()
      .backward();
    return { y, a: [...lora.parameters()][0]?.grad, b: [...lora.parameters()][1]?.grad };
  });
  close(await gradients.y.toArray(), golden.y);
  close((await gradients.a?.toArray()) ?? [], golden.gradA);
  close((await gradients.b?.toArray()) ?? [], golden.gradB);
  for (const variable of model.parameters()) expect(variable.requiresGrad).toBe(false);

  lora.merge();
  const merged = noGrad(() => cAttn.forward(runtime.tensor(golden.x as number[], [4, 6])));
  close(await merged.toArray(), golden.y);
  expect(() => lora.merge()).toThrow("merged already");
});

test("a model begins as it was, and names are PEFT's", async () => {
  const runtime = cpuRuntime();
  const model = new Model(runtime);
  const x = () => runtime.tensor(golden.x as number[], [4, 6]);
  const before = await noGrad(() => model.forward(x())).toArray();
  const lora = new Lora(model, { ...options, targets: ["c_attn", "head"] });
  expect(await noGrad(() => model.forward(x())).toArray()).toEqual(before);
  const saved = await lora.torchStateDict();
  expect(Object.entries(saved).map(([name, { shape }]) => [name, shape])).toEqual([
    ["base_model.model.c_attn.lora_A.weight", [2, 6]],
    ["base_model.model.c_attn.lora_B.weight", [3, 2]],
    ["base_model.model.head.lora_A.weight", [2, 3]],
    ["base_model.model.head.lora_B.weight", [2, 2]],
  ]);
  const bound = 1 / Math.sqrt(6);
  const inner = saved["base_model.model.c_attn.lora_A.weight"]?.data ?? [];
  expect(Math.max(...inner.map(Math.abs))).toBeGreaterThan(bound / 2);
  expect(Math.max(...inner.map(Math.abs))).toBeLessThan(bound);
  expect(Object.keys(await lora.stateDict())).toContain("cAttn.loraA");
  const other = new Lora(new Model(runtime), { ...options, targets: ["c_attn", "head"], seed: 9 });
  other.loadStateDict(await lora.stateDict());
  expect(await other.torchStateDict()).toEqual(saved);
});

test("frozen halves change no bit under a recipe that casts to them", async () => {
  const run = async (frozen: "float16" | undefined): Promise<number[]> => {
    const runtime = cpuRuntime();
    const recipe = recipeOf("float16");
    const model = applyRecipe(new Model(runtime), recipe);
    const lora = new Lora(model, { ...options, frozen });
    lora.loadTorchStateDict(inPeft());
    expect(model.cAttn.weight.dtype).toBe(frozen ?? "float32");
    expect([...lora.parameters()].map(({ dtype }) => dtype)).toEqual(["float32", "float32"]);
    const y = await runtime.step(() => {
      const x = runtime.tensor(golden.x as number[], [4, 6]);
      const result = withRecipe(recipe, () => model.forward(x));
      result.to("float32").sum().backward();
      return { result, grad: [...lora.parameters()][0]?.grad };
    });
    return [...(await y.result.toArray()), ...((await y.grad?.toArray()) ?? [])];
  };
  expect(await run("float16")).toEqual(await run(undefined));
});

test("a head is trained whole, with the names that PEFT saves it under", async () => {
  const runtime = cpuRuntime();
  const model = new Model(runtime);
  const lora = new Lora(model, { ...options, trained: ["head"], frozen: "float16" });
  expect([...lora.namedParameters()].map(([name]) => name)).toEqual([
    ...["cAttn.loraA", "cAttn.loraB", "head.weight", "head.bias"],
  ]);
  const { weight, bias } = model.head;
  expect([weight.requiresGrad, weight.dtype]).toEqual([true, "float32"]);
  expect([model.cAttn.weight.requiresGrad, model.cAttn.weight.dtype]).toEqual([false, "float16"]);
  const saved = await lora.torchStateDict();
  expect(saved["base_model.model.head.weight"]?.data).toEqual(await weight.toArray());
  expect(saved["base_model.model.head.bias"]?.data).toEqual(await bias?.toArray());
  const copy = new Lora(new Model(runtime), { ...options, trained: ["head"], seed: 8 });
  const older = Object.entries(saved).map(([name, tensor]) => [
    name.replace(".head.", ".head.modules_to_save.default."),
    { ...tensor, data: tensor.data.map((x) => x + 1) },
  ]);
  const names = { targets: ["c_attn"], trained: ["head"] };
  expect(Lora.namesIn(Object.fromEntries(older))).toEqual(names);
  copy.loadTorchStateDict(Object.fromEntries(older));
  const again = await copy.torchStateDict();
  expect(again["base_model.model.head.bias"]?.data).toEqual(
    saved["base_model.model.head.bias"]?.data.map((x) => x + 1),
  );
  const { "base_model.model.head.bias": _, ...part } = saved;
  expect(() => copy.loadTorchStateDict(part)).toThrow(StateDictError);
});

test("what is wrong is named", () => {
  expect(() => new Lora(new Model(), { ...options, rank: 0 })).toThrow(
    "rank is 0; pass a whole number",
  );
  expect(() => new Lora(new Model(), { ...options, targets: ["query"] })).toThrow(
    "there is no linear layer query: take some of c_attn, head",
  );
  expect(() => new Lora(new Model(), { ...options, targets: [] })).toThrow("LoRA has no targets");
  expect(() => new Lora(new Model(), { ...options, trained: ["score"] })).toThrow(
    "there is no module score to train whole",
  );
  const wrong = (given: object) => () => new Lora(new Model(), { ...options, ...given });
  expect(wrong({ loraDropout: 0.1 })).toThrow("there is no option loraDropout; pass any of rank,");
  expect(wrong({ targets: "query" })).toThrow('targets is "query"; pass a list of names');
  expect(wrong({ alpha: "8" })).toThrow('alpha is "8"; pass a number');
  expect(wrong({ frozen: "int8" })).toThrow('frozen is "int8"; pass "float32" or "float16"');
  expect(() => new Lora({} as never, options)).toThrow("model is an object; pass a module");
  expect(() => new Lora(new Model(), undefined as never)).toThrow("the options are missing");
  const lora = new Lora(new Model(), options);
  const other = { "base_model.model.c_proj.lora_A.weight": state(golden.a, [2, 6]) };
  expect(() => lora.loadTorchStateDict(other)).toThrow(StateDictError);
  const older = Object.entries(inPeft()).map(([name, saved]) => [
    name.replace(".weight", ".default.weight"),
    saved,
  ]);
  expect(lora.loadTorchStateDict(Object.fromEntries(older)).missing).toEqual([]);
});
