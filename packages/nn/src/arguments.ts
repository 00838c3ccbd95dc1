/**
 * Throws unless `given` matches the parameters of a constructor, for callers without types. The error has one line with the mistake
 * and the remedy.
 *
 * @param call the call of the constructor, with options in braces and "?" after optional ones: `"new Linear(runtime, inFeatures,
 * outFeatures, { generator, bias? })"`. Names determine the kinds: `runtime`, `generator`, lists like `sizes`, numbers like `alpha`,
 * booleans like `bias`. Other positional arguments are positive integers. Other options may have any value.
 * @param given all arguments, in that order.
 * @throws TypeError where an argument is missing, has another kind or is one too many; RangeError for a number out of range or an unknown
 * option.
 */
export function requireArguments(call: string, ...given: readonly unknown[]): void {
  const { positions, options } = signatureOf(call);
  for (const [i, parameter] of positions.entries()) requireKind(call, parameter, given[i]);
  if (options) requireOptions(call, given[positions.length], options);
  const taken = positions.length + (options ? 1 : 0);
  const surplus = given.slice(taken).find((each) => each !== undefined);
  if (surplus === undefined) return;
  const isInPlace = surplus === true || (isPlain(surplus) && Object.hasOwn(surplus, "inplace"));
  throw new TypeError(
    `${call}: ${shown(surplus)} is an argument too many; leave it out${isInPlace ? `, because ${neverInPlace}` : ""}`,
  );
}

const neverInPlace = "tensors are never changed in place";

function requireOptions(call: string, given: unknown, options: readonly Parameter[]): void {
  const needed = options.filter(({ isOptional }) => !isOptional);
  if (given === undefined && needed.length === 0) return;
  if (given === undefined)
    throw new TypeError(
      `${call}: the options are missing; pass an object with ${needed.map(({ name, kind }) => (kind === anything ? name : `${name}: ${kind.pass}`)).join(", ")}`,
    );
  if (!isPlain(given))
    throw new TypeError(`${call}: in place of the options is ${shown(given)}; pass an object`);
  const unknown = Object.keys(given).find((key) => options.every(({ name }) => name !== key));
  if (unknown !== undefined)
    throw new RangeError(
      `${call}: there is no option ${unknown}; ${unknown === "inplace" ? `leave it out, because ${neverInPlace}` : `pass any of ${options.map(({ name }) => name).join(", ")}`}`,
    );
  for (const option of options) requireKind(call, option, given[option.name]);
}

function requireKind(
  call: string,
  { name, isOptional, kind: { fits, pass } }: Parameter,
  value: unknown,
): void {
  if (value === undefined ? isOptional : fits(value)) return;
  const text = `${call}: ${name} is ${value === undefined ? "missing" : shown(value)}; pass ${pass}`;
  throw typeof value === "number" ? new RangeError(text) : new TypeError(text);
}

/** @throws TypeError for inputs of a layer that are no tensors, such as lists of numbers */
export function requireTensors(label: string, ...inputs: readonly unknown[]): void {
  const wrong = inputs.find((input) => !hasMethod(input, "toArray"));
  if (wrong !== undefined || inputs.includes(undefined))
    throw new TypeError(
      `${label} needs a tensor, not ${shown(wrong)}; runtime.tensor(values, shape) makes one`,
    );
}

interface Parameter {
  readonly name: string;
  readonly isOptional: boolean;
  readonly kind: Kind;
}

interface Signature {
  readonly positions: readonly Parameter[];
  readonly options: readonly Parameter[] | undefined;
}

const signatures = new Map<string, Signature>();

function signatureOf(call: string): Signature {
  let signature = signatures.get(call);
  if (!signature) {
    const [, owner = "", before = "", , inside] =
      /(\w+)\(([^{}]*)(\{([^}]*)\})?\)$/.exec(call) ?? [];
    signature = {
      positions: parameters(owner, before, count),
      options: inside?.trim() ? parameters(owner, inside, anything) : undefined,
    };
    signatures.set(call, signature);
  }
  return signature;
}

const parameters = (owner: string, list: string, byDefault: Kind): Parameter[] =>
  list
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map((text) => {
      const name = text.replace("?", "");
      const kind = kinds[`${owner}.${name}`] ?? kinds[name] ?? byDefault;
      return { name, isOptional: text.endsWith("?"), kind };
    });

interface Kind {
  readonly pass: string;
  fits(value: unknown): boolean;
}

const isNatural = (value: unknown): boolean =>
  Number.isSafeInteger(value) && (value as number) >= 0;
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;
const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as Readonly<Record<string, unknown>>)[name] === "function";

const anything: Kind = { pass: "a value", fits: () => true };
const count: Kind = { pass: "a whole number above 0", fits: isCount };
const counts: Kind = {
  pass: "a list of whole numbers above 0",
  fits: (value) => Array.isArray(value) && value.length > 0 && value.every(isCount),
};
const oneOf = (...names: readonly string[]): Kind => ({
  pass: names.map((name) => JSON.stringify(name)).join(" or "),
  fits: (value) => names.includes(value as string),
});
const number: Kind = { pass: "a number", fits: Number.isFinite };
const bound: Kind = {
  pass: "a number",
  fits: (value) => typeof value === "number" && !Number.isNaN(value),
};
const axis: Kind = { pass: "a whole number", fits: Number.isSafeInteger };
const flag: Kind = { pass: "true or false", fits: (value) => typeof value === "boolean" };
const positive: Kind = {
  pass: "a number above 0",
  fits: (value) => Number.isFinite(value) && (value as number) > 0,
};
const notNegative: Kind = {
  pass: "a number from 0 on",
  fits: (value) => Number.isFinite(value) && (value as number) >= 0,
};
const probability: Kind = {
  pass: "a probability from 0 to 1",
  fits: (value) => typeof value === "number" && value >= 0 && value <= 1,
};
const initializer: Kind = {
  pass: "a function (shape, generator) => values, such as zeros",
  fits: (value) => typeof value === "function",
};
const tensor: Kind = {
  pass: "a tensor: runtime.tensor(values, shape) makes one",
  fits: (value) => hasMethod(value, "toArray"),
};
const names: Kind = {
  pass: "a list of names",
  fits: (value) => Array.isArray(value) && value.every((each) => typeof each === "string"),
};

const heightAndWidth: Kind = {
  pass: "a whole number above 0, or [height, width]",
  fits: (value) => isCount(value) || (counts.fits(value) && (value as unknown[]).length === 2),
};

/** By name, or by class and name where the name has another meaning in that class. */
const kinds: Readonly<Record<string, Kind | undefined>> = {
  model: { pass: "a module", fits: (value) => hasMethod(value, "namedModules") },
  "ModuleList.modules": {
    pass: "a list of modules",
    fits: (value) =>
      typeof (value as Partial<Iterable<unknown>> | undefined)?.[Symbol.iterator] === "function",
  },
  "ModuleDict.modules": {
    pass: "modules by name, { name: module }",
    fits: (value) => isPlain(value) && !hasMethod(value, "namedModules"),
  },
  "Loss.options": {
    pass: 'an object, such as { reduction: "sum" }',
    fits: (value) => typeof value === "object" && value !== null,
  },
  "loadStateDict.state": anything,
  "loadTorchStateDict.state": anything,
  "train.mode": flag,
  recipe: {
    pass: 'a recipe, such as recipeOf("O2")',
    fits: (value) => typeof value === "object" && value !== null && "modules" in value,
  },
  runtime: {
    pass: "gpuRuntime(device) or cpuRuntime()",
    fits: (value) => hasMethod(value, "variable"),
  },
  generator: { pass: "new Generator(seed)", fits: (value) => hasMethod(value, "uint32") },
  seed: { pass: "a whole number from 0 to 2^53 − 1", fits: isNatural },
  kernelSize: heightAndWidth,
  outputSize: heightAndWidth,
  normalizedShape: {
    pass: "the size of the last dimension, or a list of the last sizes",
    fits: (value) => isCount(value) || counts.fits(value),
  },
  approximate: oneOf("none", "tanh"),
  mode: oneOf("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"),
  sizes: counts,
  block: oneOf("basic", "bottleneck"),
  stem: oneOf("imagenet", "cifar"),
  shortcut: oneOf("projection", "padding"),
  layers: counts,
  alpha: number,
  negativeSlope: number,
  initial: number,
  eps: notNegative,
  beta: positive,
  threshold: number,
  dropout: probability,
  "Dropout.p": probability,
  "Upsample.size": counts,
  "Upsample.scale": positive,
  bias: flag,
  affine: flag,
  batchFirst: flag,
  channelsFirst: flag,
  bidirectional: flag,
  ceilMode: flag,
  countIncludePad: flag,
  alignCorners: flag,
  weightInit: initializer,
  biasInit: initializer,
  reduction: oneOf("mean", "sum", "none"),
  "KLDivLoss.reduction": oneOf("mean", "sum", "none", "batchMean"),
  weight: tensor,
  posWeight: tensor,
  ignoreIndex: axis,
  labelSmoothing: { ...probability, pass: "a number from 0 to 1" },
  blank: { pass: "a whole number from 0 on", fits: isNatural },
  zeroInfinity: flag,
  logTarget: flag,
  logInput: flag,
  full: flag,
  swap: flag,
  "SmoothL1Loss.beta": notNegative,
  delta: positive,
  margin: number,
  "TripletMarginLoss.p": notNegative,
  "MultiMarginLoss.p": { pass: "1 or 2", fits: (value) => value === 1 || value === 2 },
  "Lora.rank": count,
  targets: names,
  trained: names,
  frozen: oneOf("float32", "float16", "bfloat16"),
  bilinear: flag,
  crf: flag,
  zeroInitResidual: flag,
  strict: flag,
  initialWeight: number,
  momentum: {
    pass: "a number from 0 to 1; running statistics as averages of all batches, torch's None, are not here",
    fits: (value) => typeof value === "number" && value >= 0 && value <= 1,
  },
  numLayers: count,
  startAxis: axis,
  endAxis: axis,
  min: bound,
  max: bound,
};

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !hasMethod(value, "uint32") &&
  !hasMethod(value, "variable");

/** A value as errors name it. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value !== "object" || value === null) return String(value);
  const name = value.constructor?.name ?? "Object";
  return name === "Object" ? "an object" : `a ${name}`;
}
