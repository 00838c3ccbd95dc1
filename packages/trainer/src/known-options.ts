import type { TrainingCheckpoints } from "./training-state.js";

/** The kind of each option. */
export type Kinds<Options> = Readonly<Record<keyof Options, "function" | "any">>;

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

/** Throws a TypeError for unknown options, which would have no effect, and for what is no function. */
export function requireKinds(
  what: string,
  options: object,
  kinds: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(options)) {
    const kind = kinds[name];
    if (!kind)
      throw new TypeError(
        `${what} has no option ${name}: it has ${Object.keys(kinds).sort().join(", ")}`,
      );
    if (kind === "function" && value !== undefined && typeof value !== "function")
      throw new TypeError(`${name} is ${said(value)}: it must be a function`);
  }
}

const said = (value: unknown): string =>
  typeof value === "string" ? JSON.stringify(value) : String(value);
