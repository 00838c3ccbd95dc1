import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError, Mlp, type MlpOptions } from "@halfstep/models";
import { Linear, Lora } from "@halfstep/nn";
import { cpuRuntime, noGrad } from "@halfstep/tensor";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { recipeFor } from "../precision.js";
import { adaptersFor } from "./adapters-for.js";
import { addAdapter, readPeftAdapter, writePeftAdapter } from "./peft-adapter.js";

const folder = mkdtempSync(join(tmpdir(), "halfstep-peft-"));
afterAll(() => rmSync(folder, { recursive: true }));
const runtime = cpuRuntime();
const newModel = (sizes: MlpOptions["sizes"] = [3, 4, 2]): Mlp =>
  new Mlp(runtime, { sizes, seed: 1 });
const layers = [...newModel().namedModules()].flatMap(([path, module]) =>
  module instanceof Linear ? [path] : [],
);
const [first, last] = layers as [string, string];
const said = async (model: Mlp): Promise<number[]> => [
  ...(await noGrad(() => model.forward(runtime.tensor([1, 2, 3], [1, 3]))).toArray()),
];

let wanted: number[];
beforeAll(async () => {
  const model = newModel();
  const lora = new Lora(model, { rank: 2, alpha: 6, targets: [first], trained: [last], seed: 5 });
  noGrad(() => {
    for (const variable of lora.parameters()) variable.assign(variable.add(0.5));
  });
  wanted = await said(model);
  await writePeftAdapter(folder, lora, { taskType: "SEQ_CLS", base: "base" });
});

const config = (): Record<string, unknown> =>
  JSON.parse(readFileSync(join(folder, "adapter_config.json"), "utf8"));

it("are read again as they were written, and merge into their model", async () => {
  expect(config()).toMatchObject({
    ...{ peft_type: "LORA", task_type: "SEQ_CLS", base_model_name_or_path: "base", r: 2 },
    ...{ lora_alpha: 6, target_modules: [first], modules_to_save: [last], bias: "none" },
  });
  const adapter = await readPeftAdapter(folder);
  expect(adapter).toMatchObject({ rank: 2, alpha: 6, targets: [first], trained: [last] });
  const model = newModel();
  const lora = addAdapter(model, adapter);
  expect(await said(model)).toEqual(wanted);
  lora.merge();
  for (const [i, value] of (await said(model)).entries())
    expect(value).toBeCloseTo(wanted[i] as number, 5);
  expect(() => addAdapter(newModel([3, 5, 2]), adapter)).toThrow(
    /has adapters of another model: of another shape: base_model/,
  );
  expect(() => addAdapter(newModel([3, 2]), adapter)).toThrow(CheckpointError);
});

it.each([
  [{ peft_type: "IA3" }, /has peft_type "IA3": only "LORA" is supported/],
  [{ use_dora: true }, /has use_dora true/],
  [{ rank_pattern: { x: 1 } }, /has rank_pattern an object/],
  [{ r: 3 }, /has r 3, and base_model\.model\..*lora_A\.weight has rank 2/],
  [{ lora_alpha: "much" }, /has lora_alpha "much"/],
])("with %o are refused in a line", async (changes, message) => {
  const before = config();
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ ...before, ...changes }));
  const reading = readPeftAdapter(folder);
  await expect(reading).rejects.toThrow(message);
  await expect(reading).rejects.toBeInstanceOf(ConfigError);
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(before));
});

it("have the scale of rank-stabilised ones, and patterns for targets change nothing", async () => {
  const before = config();
  const changes = { use_rslora: true, target_modules: ".*" };
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify({ ...before, ...changes }));
  const adapter = await readPeftAdapter(folder);
  expect([adapter.alpha, adapter.targets]).toEqual([6 * Math.SQRT2, [first]]);
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(before));
});

it("are refused by the file that is missing or no JSON", async () => {
  await expect(readPeftAdapter(join(folder, "none"))).rejects.toThrow(
    /none\/adapter_config\.json cannot be read/,
  );
  const before = config();
  writeFileSync(join(folder, "adapter_config.json"), "{");
  await expect(readPeftAdapter(folder)).rejects.toThrow(/adapter_config\.json is no JSON/);
  writeFileSync(join(folder, "adapter_config.json"), JSON.stringify(before));
});

it("are made as flags ask, over a model in the dtype of its recipe", () => {
  const make = (lora: number | undefined, precision: string): readonly unknown[] => {
    const model = newModel();
    const made = adaptersFor(
      model,
      { lora, loraTargets: [first] },
      { recipe: recipeFor(precision), seed: 1 },
    );
    return [[...model.parameters()][0]?.dtype, made?.rank];
  };
  expect(make(undefined, "float16")).toEqual(["float32", undefined]);
  expect(make(4, "float16")).toEqual(["float16", 4]);
  expect(make(4, "float32")).toEqual(["float32", 4]);
});
