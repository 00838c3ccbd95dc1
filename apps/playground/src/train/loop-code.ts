import type { TrainConfig } from "./config.js";
import type { Setup } from "./setups.js";

const models = {
  moons: (seed: number) => `new Mlp(runtime, { sizes: [2, 32, 32, 2], seed: ${seed} })`,
  digits: (seed: number) => `new DigitsCnn(runtime, { seed: ${seed} })`,
  text: (seed: number) =>
    `new GPT(runtime, { seed: ${seed}, vocabSize, blockSize: 64, nLayer: 2, nHead: 4, nEmbd: 64 })`,
} as const;

const modelNames = { moons: "Mlp", digits: "DigitsCnn", text: "GPT" } as const;

/** The loop of a lane as a program of one's own: what the page does, without the page. */
export function loopCode(config: TrainConfig, setup: Setup): string {
  const { task, seed, lr, shrink, gain, scale } = config;
  const { recipe, scaling, storage } = setup;
  const isPlain = storage === "plain";
  const dtype = recipe.compute;
  const imports = [
    ...(dtype === "float32" ? [] : ['import { autocast } from "@halfstep/autocast";']),
    'import { requestDevice } from "@halfstep/device";',
    ...(scaling === "off" ? [] : ['import { GradScaler } from "@halfstep/grad-scaler";']),
    `import { ${modelNames[task]} } from "@halfstep/models";`,
    'import { Adam } from "@halfstep/optim";',
    `import { ${[...(scaling === "off" ? [] : ["ampPrimitives"]), "crossEntropy", "flatten", "gpuRuntime"].join(", ")} } from "@halfstep/tensor";`,
  ];
  const options =
    scaling === "fixed"
      ? `{ preset: "static", initScale: 2 ** ${scale} }`
      : `{ initScale: 2 ** ${scale}, growthInterval: 200 }`;
  const forward = `crossEntropy(model.forward(x${gain === 0 ? "" : `.mul(2 ** ${gain})`}), y)`;
  const cast = dtype === "float32" ? forward : `autocast({ dtype: "${dtype}" }, () => ${forward})`;
  const loss = shrink === 0 ? "loss" : `loss.mul(2 ** -${shrink})`;
  const update =
    scaling === "off"
      ? [`  ${loss}.backward();`, "  optimizer.step();"]
      : [`  scaler.scale(${loss}).backward();`, "  scaler.step(optimizer);", "  scaler.update();"];
  return [
    ...imports,
    "",
    "const runtime = gpuRuntime(await requestDevice());",
    `const model = ${models[task](seed)};`,
    ...(isPlain ? [`model.${recipe.params}();`] : []),
    `const optimizer = new Adam(runtime.target, flatten(model.parameters()), { lr: ${lr}${isPlain ? ', storage: "plain"' : ""} });`,
    ...(scaling === "off"
      ? []
      : [`const scaler = new GradScaler(ampPrimitives(runtime), ${options});`]),
    "",
    "for (const { x, y } of batches) {",
    "  using loss = await runtime.step(() => {",
    `    const loss = ${cast};`,
    ...update.map((line) => `  ${line}`),
    "    optimizer.zeroGrad();",
    "    return loss;",
    "  });",
    "}",
    "",
  ].join("\n");
}
