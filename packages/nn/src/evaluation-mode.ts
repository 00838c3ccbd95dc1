import { requireArguments } from "./arguments.js";
import type { Module } from "./module.js";

/**
 * Puts a model into evaluation mode. Returns a function that gives each of its modules the mode back that it had before: a layer that was
 * in evaluation mode during training (frozen batch norm) stays there.
 *
 * @example
 * const goOn = evaluationMode(model);
 * try {
 *   await test(model);
 * } finally {
 *   goOn();
 * }
 */
export function evaluationMode(model: Module): () => void {
  requireArguments("evaluationMode(model)", model);
  // Outer modules come before their parts, which `train()` also sets.
  const modes = [...model.namedModules()].map(([, module]) => [module, module.isTraining] as const);
  model.eval();
  return () => {
    for (const [module, isTraining] of modes) module.train(isTraining);
  };
}
