import { recipeOf } from "@halfstep/autocast";
import { Dropout, Generator, Linear, Module } from "@halfstep/nn";
import { cpuRuntime, type Tensor } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { OnnxError, toOnnx } from "../src/index.js";

const runtime = cpuRuntime();
const generator = new Generator(1);

/** A linear layer, dropout, and what is given. */
class Part extends Module {
  readonly linear: Linear = new Linear(runtime, 4, 4, { generator });
  readonly dropout: Dropout = new Dropout({ generator });
  readonly compute: (x: Tensor) => Tensor;

  constructor(compute: (x: Tensor) => Tensor) {
    super();
    this.compute = compute;
  }

  forward(x: Tensor): Tensor {
    return this.compute(this.dropout.forward(this.linear.forward(x)));
  }
}

/** A model of one part. */
class Around extends Module {
  readonly part: Part;

  constructor(compute: (x: Tensor) => Tensor) {
    super();
    this.part = new Part(compute);
  }

  forward(x: Tensor): Tensor {
    return this.part.forward(x);
  }
}

const example = [runtime.zeros([2, 4])];

async function errorOf(compute: (x: Tensor) => Tensor): Promise<OnnxError> {
  const error = await toOnnx(new Around(compute), example).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OnnxError);
  return error as OnnxError;
}

test("an op without operator is named with its module", async () => {
  const error = await errorOf((x) => x.cumsum(1));
  expect(error.message).toBe(
    "cumsum of part cannot be written as ONNX: there is no operator for it",
  );
  expect([error.problem, error.unsupported]).toEqual(["unsupported", ["cumsum"]]);
});

test("what depends on the size of an axis in another way is refused", async () => {
  const scaled = await errorOf((x) => x.mul(1 / (x.shape[0] as number)));
  expect(scaled.message).toContain("scale of part");
  expect(scaled.message).toContain("fix that by the option axes");
  const branch = await errorOf((x) => ((x.shape[0] as number) > 2 ? x.exp() : x));
  expect(branch.message).toContain(
    'other ops where an axis has another size: fix the sizes of "batch"',
  );
  const fixed = new Around((x) => x.mul(1 / (x.shape[0] as number)));
  expect((await toOnnx(fixed, example, { axes: {} })).length).toBeGreaterThan(100);
});

test("numbers of the host that change, and arithmetic of integers are named", async () => {
  const host = await errorOf((x) => x.add(runtime.full([x.shape[0] as number, 1], 2)));
  expect(host.message).toContain("made in forward() from numbers of the host, which change");
  const integers = await errorOf((x) => x.to("uint32").clamp({ min: 1 }).to("float32"));
  expect(integers.message).toContain("of integers only sums, differences and products");
  const compared = await errorOf((x) => x.to("int32").eq(1.5));
  expect(compared.message).toContain("integers meet the number 1.5");
  const narrow = await errorOf((x) => x.to("float8e4m3fn").to("float32"));
  expect(narrow.message).toContain("it rounds to 8 bits");
});

test("wrong options are refused", async () => {
  const model = new Around((x) => x);
  const refused = (options: Parameters<typeof toOnnx>[2], words: string): Promise<void> =>
    expect(toOnnx(model, example, options)).rejects.toThrow(words);
  await refused({ opset: 9 }, "opset 9 is not written");
  await refused({ inputNames: ["a", "b"] }, "2 names for 1 tensors");
  await refused({ axes: { x: { 0: "batch" } } }, 'axes names "x", and the inputs are input');
  await refused({ axes: { input: { 2: "width" } } }, 'axes names dimension 2 of "input"');
  await refused({ axes: { input: { 0: 5 as never } } }, 'no name for dimension 0 of "input"');
  await refused({ multiples: { height: 2 } }, 'multiples names "height", and the named axes are');
  await refused({ multiples: { batch: 3 } }, "which is no multiple of 3");
  await refused({ channelsFirst: ["images"] }, 'channelsFirst names "images", and the inputs and');
  await refused({ channelsFirst: ["input"] }, "which has 2 dimensions and not [batch, height");
  await refused({ recipe: "O1" as never }, 'recipe is O1: pass recipeOf("O1")');
  await refused({ recipe: recipeOf("O2") }, "call applyRecipe(model, recipe)");
  await refused({ float32Outputs: "no" as never }, "float32Outputs is no: pass true or false");
  await refused({ inputNames: "x" as never }, "inputNames is no list of names");
  await expect(toOnnx(model, example[0] as never)).rejects.toThrow("inputs is no list");
  await expect(toOnnx(model, [])).rejects.toThrow("at least one tensor");
});

test("the model stays in its mode", async () => {
  const model = new Around((x) => x);
  model.part.eval();
  await toOnnx(model, example);
  const modes = [...model.namedModules()].map(([path, { isTraining }]) => [path, isTraining]);
  expect(modes).toEqual([
    ["", true],
    ["part", false],
    ["part.linear", false],
    ["part.dropout", false],
  ]);
});
