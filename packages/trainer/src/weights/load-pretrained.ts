import type { Recipe } from "@halfstep/autocast";
import {
  loadTorchStateDict,
  type Module,
  type StateDict,
  StateDictError,
  type StateDictKeys,
} from "@halfstep/nn";
import { CheckpointError } from "../checkpoint/checkpoint-error.js";
import { noteRange } from "./audit-range.js";
import { describeMisfits } from "./describe-misfits.js";

/** Weights to start a training from. */
export interface PretrainedWeights {
  readonly weights: StateDict;
  /** The file or folder that they are from, which errors and lines name. */
  readonly source: string;
  /**
   * The names, there and here, of the layers that are useless for other classes: `/^(fc|linear)\./`. They begin anew where they do not fit.
   * Default: none.
   */
  readonly head?: RegExp | undefined;
  /** How training computes. Weights beyond its range are noted. */
  readonly recipe: Pick<Recipe, "params" | "compute">;
  /** Called with lines for people. */
  readonly onNote: (line: string) => void;
}

/**
 * Loads weights of others into a model by torch's names and layouts, to train it further: all of them, or all but the head, or none.
 *
 * @returns the names of the parameters that begin anew, in torch's spelling
 * @throws CheckpointError that lists missing and unexpected names where they are of another model
 *
 * @example
 * const weights = await readWeights("resnet50.pth");
 * loadPretrained(model, { weights, source: "resnet50.pth", head: /^fc\./, recipe: recipeFor("float16"), onNote: console.log });
 */
export function loadPretrained(
  model: Module,
  { weights, source, head, recipe, onNote }: PretrainedWeights,
): readonly string[] {
  noteRange(weights, recipe, onNote);
  const isOfHead = (name: string): boolean => head?.test(name) ?? false;
  const misfits = misfitsOf(model, weights);
  if (!misfits) {
    onNote(`weights of ${source}`);
    return [];
  }
  const { missing, unexpected, misshapen } = misfits;
  const ofBody = {
    missing: missing.filter((name) => !isOfHead(name)),
    unexpected: unexpected.filter((name) => !isOfHead(name)),
    misshapen: misshapen.filter((name) => !isOfHead(name)),
  };
  const problems = describeMisfits(model, weights, ofBody);
  if (problems !== "")
    throw new CheckpointError("misfit", source, `has weights of another model: ${problems}`);
  const body = Object.entries(weights).filter(([name]) => !isOfHead(name));
  const { missing: fresh } = loadTorchStateDict(model, Object.fromEntries(body), { strict: false });
  const theirs = Object.keys(weights).find(isOfHead);
  onNote(
    `weights of ${source}, but for the head, ${theirs === undefined ? "which is missing" : `where ${theirs} is [${weights[theirs]?.shape.join(", ")}]`}: ${fresh.join(", ")} begin anew`,
  );
  return fresh;
}

/** What keeps a state from being loaded whole; undefined where it is loaded. */
function misfitsOf(model: Module, weights: StateDict): StateDictKeys | undefined {
  try {
    loadTorchStateDict(model, weights);
    return undefined;
  } catch (error) {
    if (error instanceof StateDictError) return error;
    throw error;
  }
}
