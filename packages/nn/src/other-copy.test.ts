import { cpuRuntime } from "@halfstep/tensor";
import { afterEach, expect, test, vi } from "vitest";
import { Generator, Linear, Module, ModuleList, Sequential } from "./index.js";

afterEach(() => vi.resetModules());

/** Modules of a second copy of the packages, as a program has where versions differ. */
async function secondCopy() {
  vi.resetModules();
  return { tensor: await import("@halfstep/tensor"), nn: await import("./index.js") };
}

const tensorTwice =
  /is a tensor of another copy of @halfstep\/tensor: check by `npm ls @halfstep\/tensor` that there is one copy/;
const nnTwice = /is a module of another copy of @halfstep\/nn: check by `npm ls @halfstep\/nn`/;

test("parameters of another copy of tensor are refused, not left out", async () => {
  const { tensor } = await secondCopy();
  const other = tensor.cpuRuntime();
  const generator = new Generator(0);
  expect(() => new Linear(other as never, 2, 3, { generator })).toThrow(tensorTwice);
  class Scaled extends Module {
    readonly scale = other.variable([1], [1], { requiresGrad: true });
    forward(): void {}
  }
  expect(() => [...new Scaled().parameters()]).toThrow(`scale ${tensorTwice.source.slice(0, 13)}`);
  await expect((async () => new Scaled().stateDict())()).rejects.toThrow(tensorTwice);
});

test("modules of another copy of nn are refused, not left out", async () => {
  const { tensor, nn } = await secondCopy();
  const layer = new nn.Linear(tensor.cpuRuntime(), 2, 3, { generator: new nn.Generator(0) });
  expect(() => [...new Sequential(layer as never).parameters()]).toThrow(nnTwice);
  expect(() => new ModuleList([layer as never])).toThrow(nnTwice);
  class Holder extends Module {
    readonly parts = [layer];
    forward(): void {}
  }
  expect(() => new Holder().half()).toThrow(/^parts\.0 is a module of another copy/);
  // Within its copy it is a layer as any other.
  expect([...new nn.Sequential(layer).parameters()]).toHaveLength(2);
});

test("tensors of the same copy in fields stay what they are: no parameters", () => {
  const runtime = cpuRuntime();
  class Constant extends Module {
    readonly ones = runtime.tensor([1, 1]);
    readonly settings = { isTensor: false };
    forward(): void {}
  }
  expect([...new Constant().parameters()]).toEqual([]);
});
