import type { TrainConfig } from "./config.js";
import type { Setup } from "./setups.js";
import { type TaskCode, taskCodes } from "./task-code.js";

/** The program of a lane: what the page computes, for Node, with its data. It prints the loss of each of `steps` steps. */
export function loopCode(config: TrainConfig, setup: Setup, steps: number): string {
  const { lr, shrink, scale } = config;
  const { recipe, scaling, storage } = setup;
  const isPlain = storage === "plain";
  const isScaled = scaling !== "off";
  const dtype = recipe.compute;
  const task = taskCodes[config.task](config);
  const options =
    scaling === "fixed"
      ? `{ preset: "static", initScale: 2 ** ${scale} }`
      : `{ initScale: 2 ** ${scale}, growthInterval: 200 }`;
  const cast =
    dtype === "float32" ? task.loss : `autocast({ dtype: "${dtype}" }, () => ${task.loss})`;
  const loss = shrink === 0 ? "loss" : `loss.mul(2 ** -${shrink})`;
  const update = isScaled
    ? [`scaler.scale(${loss}).backward();`, "scaler.step(optimizer);", "scaler.update();"]
    : [`${loss}.backward();`, "optimizer.step();"];
  return [
    ...importsOf(task, { isCast: dtype !== "float32", isScaled }),
    "",
    ...task.data,
    "",
    '// In a browser: requestDevice of "@halfstep/device".',
    "const runtime = gpuRuntime(await requestDevice());",
    `const model = ${task.model};`,
    ...(isPlain ? [`model.${recipe.params}();`] : []),
    "const groups = flattenByDType(model.parameters()).map((params) => ({ params }));",
    `const optimizer = new Adam(runtime.target, groups, { lr: ${lr}${isPlain ? ', storage: "plain"' : ""} });`,
    ...(isScaled ? [`const scaler = new GradScaler(ampPrimitives(runtime), ${options});`] : []),
    "",
    "let step = 0;",
    "for (const { inputs, shape, labels } of batches()) {",
    "  const loss = await runtime.step(() => {",
    "    const x = runtime.tensor(inputs, shape);",
    "    const y = runtime.tensor(labels);",
    `    const loss = ${cast};`,
    ...update.map((line) => `    ${line}`),
    "    optimizer.zeroGrad();",
    "    return loss;",
    "  });",
    "  console.log(step, await loss.item());",
    "  loss.dispose();",
    `  if (++step === ${steps}) break;`,
    "}",
    "",
  ].join("\n");
}

/** One line for each package, in alphabetical order. */
function importsOf(
  { imports }: TaskCode,
  { isCast, isScaled }: { readonly isCast: boolean; readonly isScaled: boolean },
): readonly string[] {
  const names: Record<string, readonly string[]> = {
    "@halfstep/device/node": ["requestDevice"],
    "@halfstep/optim": ["Adam"],
    "@halfstep/tensor": [
      ...(isScaled ? ["ampPrimitives"] : []),
      ...["crossEntropy", "flattenByDType", "gpuRuntime"],
    ],
    ...(isCast && { "@halfstep/autocast": ["autocast"] }),
    ...(isScaled && { "@halfstep/grad-scaler": ["GradScaler"] }),
    ...imports,
  };
  return Object.keys(names)
    .sort()
    .map((name) => `import { ${names[name]?.join(", ")} } from "${name}";`);
}
