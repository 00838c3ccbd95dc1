import { Linear, Module, type StateDict, torchStateDict } from "@halfstep/nn";
import { cpuRuntime, Generator, type Tensor } from "@halfstep/tensor";
import { describe, expect, it } from "vitest";
import { recipeFor } from "../precision.js";
import { loadPretrained } from "./load-pretrained.js";

const runtime = cpuRuntime();

class Classifier extends Module {
  readonly body: Linear;
  readonly fc: Linear;

  constructor(seed: number, classes: number) {
    super();
    const generator = new Generator(seed);
    this.body = new Linear(runtime, 3, 2, { generator });
    this.fc = new Linear(runtime, 2, classes, { generator });
  }

  forward(x: Tensor): Tensor {
    return this.fc.forward(this.body.forward(x).relu());
  }
}

const source = "theirs.pth";
const weights = await torchStateDict(new Classifier(1, 4));

const load = (model: Module, given: StateDict, precision = "float32") => {
  const said: string[] = [];
  const onNote = (line: string): unknown => said.push(line);
  const recipe = recipeFor(precision);
  const fresh = loadPretrained(model, { weights: given, source, head: /^fc\./, recipe, onNote });
  return { fresh, said };
};

describe("loadPretrained", () => {
  it("takes every parameter, and says what float16 cannot hold", async () => {
    const model = new Classifier(2, 4);
    const bias = { shape: [4], dtype: "float32", data: Float32Array.of(70_000, 1, 2, 3) } as const;
    const large = { ...weights, "fc.bias": bias };
    const { fresh, said } = load(model, large, "O2");
    expect([fresh, await torchStateDict(model)]).toEqual([[], large]);
    expect(said).toEqual([
      expect.stringMatching(/^fc\.bias: 1 of 4 elements are beyond float16's largest number/),
      "weights of theirs.pth",
    ]);
    expect(load(model, large).said).toEqual(["weights of theirs.pth"]);
  });

  it("leaves a head as it was drawn where there are other classes, another head or none", async () => {
    const { "fc.weight": weight, "fc.bias": bias, ...body } = weights;
    if (!weight || !bias) throw new Error("the model has no head");
    const drawn = await torchStateDict(new Classifier(2, 7));
    for (const [given, where] of [
      [weights, "where fc.weight is [4, 2]"],
      [{ ...body, "fc.0.weight": weight, "fc.0.bias": bias }, "where fc.0.weight is [4, 2]"],
      [body, "which is missing"],
    ] as const) {
      const model = new Classifier(2, 7);
      const { fresh, said } = load(model, given);
      expect(said).toEqual([
        `weights of theirs.pth, but for the head, ${where}: fc.weight, fc.bias begin anew`,
      ]);
      expect(fresh).toEqual(["fc.weight", "fc.bias"]);
      expect(await torchStateDict(model)).toEqual({ ...drawn, ...body });
    }
  });

  it("refuses another body by the names that are missing and those that are left over, and loads nothing", async () => {
    const { "body.weight": moved, ...others } = weights;
    const model = new Classifier(2, 7);
    const before = await torchStateDict(model);
    const other = { ...others, "bodi.weight": moved } as StateDict;
    expect(() => load(model, other)).toThrow(
      "theirs.pth has weights of another model: missing: body.weight (nearest: bodi.weight); unexpected: bodi.weight",
    );
    expect(await torchStateDict(model)).toEqual(before);
    const whole = (): unknown =>
      loadPretrained(model, { weights, source, recipe: recipeFor("float32"), onNote: () => {} });
    expect(whole).toThrow(
      "of another shape: fc.weight is [4,2], and the model's [7,2], fc.bias is [4], and the model's [7]",
    );
  });
});
