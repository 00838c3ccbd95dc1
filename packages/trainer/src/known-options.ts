import { type Kinds, requireKinds, said } from "./option-kinds.js";
import type { TrainingCheckpoints } from "./training-state.js";

const ofCheckpoints: Kinds<TrainingCheckpoints> = {
  ...{ store: "any", parts: "any", every: "any", atEnd: "any", resume: "any", tables: "any" },
  ...{ onNote: "function" },
};

/** Throws a TypeError for unknown options, which would have no effect, and for what is no function, store or checkpoint. */
export function requireKnownOptions<
  Options extends { readonly checkpoints?: Partial<TrainingCheckpoints> | undefined },
>(options: Options, kinds: Kinds<Options>): void {
  requireKinds("train()", options, kinds);
  const { checkpoints } = options;
  if (!checkpoints) return;
  requireKinds("checkpoints", checkpoints, ofCheckpoints);
  const { store, parts, resume } = checkpoints;
  if (typeof store?.save !== "function")
    throw new TypeError(
      `checkpoints.store is ${said(store)}: pass a store of checkpoints, such as new CheckpointFolder(path)`,
    );
  if (typeof parts !== "object" || parts === null)
    throw new TypeError(
      `checkpoints.parts is ${said(parts)}: pass { model, optimizer } and what else has a state`,
    );
  const { model, optimizer, ...others } = parts;
  for (const [name, part] of Object.entries({ model, optimizer, ...others }))
    if (typeof part?.stateDict !== "function" || typeof part.loadStateDict !== "function")
      throw new TypeError(
        `checkpoints.parts.${name} is ${said(part)}: it must have stateDict() and loadStateDict()`,
      );
  if (resume !== undefined && resume !== "auto" && !isCheckpoint(resume))
    throw new TypeError(
      `checkpoints.resume is ${said(resume)}: it must be "auto" or a checkpoint that the store gave`,
    );
}

const isCheckpoint = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "parts" in value;
