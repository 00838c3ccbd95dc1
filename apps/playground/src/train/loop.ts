import { withRecipe } from "@halfstep/autocast";
import { GradScaler } from "@halfstep/grad-scaler";
import { applyRecipe } from "@halfstep/nn";
import { Adam } from "@halfstep/optim";
import {
  ampPrimitives,
  flattenByDType,
  type Runtime,
  type Storage,
  type Tensor,
} from "@halfstep/tensor";
import type { TrainConfig } from "./config.js";
import { type Setup, scalerOptionsOf } from "./setups.js";
import type { Task, TaskParts } from "./tasks/task.js";

/** A task with what trains it in one setup, and how a step of that is recorded. */
export class Loop {
  readonly task: Task;
  readonly optimizer: Adam<Storage>;
  readonly scaler: GradScaler<Storage, Tensor>;
  readonly #config: TrainConfig;

  constructor(
    runtime: Runtime,
    setup: Setup,
    config: TrainConfig,
    makeTask: (parts: TaskParts) => Task,
  ) {
    this.#config = config;
    const { recipe, storage } = setup;
    this.task = makeTask({
      runtime,
      config,
      inPrecision: (fn) => withRecipe(recipe, fn as () => never),
    });
    const { model } = this.task;
    if (recipe.params !== "float32") applyRecipe(model, recipe);
    const groups = flattenByDType(model.parameters()).map((params) => ({ params }));
    this.optimizer = new Adam(runtime.target, groups, { lr: config.lr, storage });
    this.scaler = new GradScaler(ampPrimitives(runtime), scalerOptionsOf(setup, 2 ** config.scale));
  }

  /** Records a step, and returns its loss. */
  record(step: number): Tensor {
    // Gradients stay until the next step, to be looked at.
    this.optimizer.zeroGrad();
    const loss = this.task.loss(step);
    const { shrink } = this.#config;
    this.scaler.scale(shrink === 0 ? loss : loss.mul(2 ** -shrink)).backward();
    this.scaler.step(this.optimizer);
    this.scaler.update();
    return loss;
  }
}
