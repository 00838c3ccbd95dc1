import { Module } from "@halfstep/nn";
import { type Tensor, where } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { toOnnx } from "../src/index.js";
import { runtime } from "./cases.js";
import { runOnnx } from "./session.js";

// Casts to integers saturate in the file as they do in the model, and sums and products are those modulo 2^32.

class Computed extends Module {
  readonly #compute: (x: Tensor) => Tensor;

  constructor(compute: (x: Tensor) => Tensor) {
    super();
    this.#compute = compute;
  }

  forward(x: Tensor): Tensor {
    return this.#compute(x);
  }
}

const floats = [0, -0.7, 1.9, -3.5, 65_504, 3e9, -3e9, 5e9, 1e20, -1e20, 1 / 0, -1 / 0];

test.each<[string, (x: Tensor) => Tensor]>([
  ["float32 to int32", (x) => x.to("int32").to("float32")],
  ["float32 to uint32", (x) => x.to("uint32").to("float32")],
  ["float16 to int32", (x) => x.to("float16").to("int32").to("float32")],
  ["int32 to uint32", (x) => x.to("int32").to("uint32").to("float32")],
  ["uint32 to int32", (x) => x.to("uint32").to("int32").to("float32")],
  ["sums of int32", (x) => x.to("int32").add(7).add(x.to("int32")).to("float32")],
  ["products of int32", (x) => x.to("int32").mul(x.to("int32").sub(5)).mul(-3).to("float32")],
  ["products of uint32", (x) => x.to("uint32").square().sub(9).to("float32")],
  [
    "negative integers",
    (x) =>
      x
        .to("int32")
        .neg()
        .add(-(2 ** 31))
        .to("float32"),
  ],
  ["a choice of numbers", (x) => where(x.gt(1), x.to("int32").to("float32"), -2)],
  ["a mask to int32", (x) => x.gt(0).to("int32").to("float32")],
])("%s", async (_, compute) => {
  const input = runtime.tensor(floats);
  const wanted = [...(await compute(input).toArray())];
  const bytes = await toOnnx(new Computed(compute), [input]);
  const { output } = await runOnnx(bytes, { input });
  expect(output?.values).toEqual(wanted);
});
