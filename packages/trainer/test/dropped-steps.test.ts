import { GradScaler } from "@halfstep/grad-scaler";
import { Mlp } from "@halfstep/models";
import { SGD } from "@halfstep/optim";
import { ampPrimitives, cpuRuntime, flatten } from "@halfstep/tensor";
import { expect, it } from "vitest";

// Steps that are dropped restore variables. States of optimizers and scalers are written at once, so that they are refused within a step.

it("states of optimizers and scalers are not loaded within a step, and nothing changes there", async () => {
  const runtime = cpuRuntime();
  const model = new Mlp(runtime, { sizes: [2, 2], seed: 1 });
  const optimizer = new SGD(runtime.target, flatten(model.parameters()), {
    ...{ lr: 0.1, momentum: 0.9 },
  });
  const scaler = new GradScaler(ampPrimitives(runtime), { initScale: 8 });
  const states = async () => [await optimizer.stateDict(), await scaler.stateDict()] as const;
  const [own, scale] = await states();
  const message = (of: string) => new RegExp(`^loadStateDict\\(\\) of ${of} inside a step: `);
  for (const [load, of] of [
    [() => optimizer.loadStateDict(own), "an optimizer"],
    [() => scaler.loadStateDict({ ...scale, scale: 32 }), "a scaler"],
  ] as const) {
    await expect(runtime.step(load)).rejects.toThrow(message(of));
    expect(() => runtime.dryRun(load)).toThrow(message(of));
  }
  expect(await states()).toEqual([own, scale]);
});

it("a model is not stored in another dtype within a step", async () => {
  const runtime = cpuRuntime();
  const model = new Mlp(runtime, { sizes: [2, 2], seed: 1 });
  const before = await model.stateDict();
  await expect(runtime.step(() => void model.half())).rejects.toThrow(
    /^half\(\) or store\(\) of a module inside a step: /,
  );
  expect(await model.stateDict()).toEqual(before);
});

it("a state whose await was forgotten is named so", async () => {
  const runtime = cpuRuntime();
  const parameters = flatten(new Mlp(runtime, { sizes: [2, 2], seed: 1 }).parameters());
  const optimizer = new SGD(runtime.target, parameters, { lr: 0.1, momentum: 0.9 });
  const scaler = new GradScaler(ampPrimitives(runtime));
  expect(() => optimizer.loadStateDict(optimizer.stateDict() as never)).toThrow(
    "the state is a promise: write loadStateDict(await optimizer.stateDict())",
  );
  expect(() => scaler.loadStateDict(scaler.stateDict() as never)).toThrow("is a promise");
  expect(() => optimizer.loadStateDict(null as never)).toThrow("the state is null: load what");
  expect(() => scaler.loadStateDict(undefined as never)).toThrow("the state is undefined: load");
  const plain = JSON.parse(JSON.stringify(await optimizer.stateDict()));
  expect(() => optimizer.loadStateDict(plain)).toThrow("is no array: plain JSON makes objects of");
});
