/**
 * Throws unless `given` matches the parameters of a constructor, for callers without types. The error has one line with the mistake
 * and the remedy.
 *
 * @param call the call of the constructor, with options in braces and "?" after optional ones: `"new Linear(runtime, inFeatures,
 * outFeatures, { generator, bias? })"`. Names determine the kinds: `runtime`, `generator`, `seed`, `kernelSize`, lists like
 * `sizes`, numbers like `alpha`, `numLayers`. Other positional arguments are positive integers, and other options may have any value.
 * @param given the arguments, in that order.
 * @throws TypeError where an argument is missing or has another kind; RangeError for a number out of range or an unknown option.
 */
export function requireArguments(call: string, ...given: readonly unknown[]): void {
  const { positions, options } = signatureOf(call);
  for (const [i, { name, isOptional }] of positions.entries())
    requireKind(call, name, given[i], isOptional, kinds[name] ?? count);
  if (options) requireOptions(call, given[positions.length], options);
}

function requireOptions(call: string, given: unknown, options: readonly Parameter[]): void {
  const needed = options.filter(({ isOptional }) => !isOptional).map(({ name }) => name);
  if (given === undefined && needed.length === 0) return;
  if (given === undefined)
    throw new TypeError(
      `${call}: the options are missing; pass an object with ${needed.map((name) => (kinds[name] ? `${name}: ${kinds[name].pass}` : name)).join(", ")}`,
    );
  if (!isPlain(given))
    throw new TypeError(`${call}: in place of the options is ${shown(given)}; pass an object`);
  const unknown = Object.keys(given).find((key) => options.every(({ name }) => name !== key));
  if (unknown !== undefined)
    throw new RangeError(
      `${call}: there is no option ${unknown}; pass any of ${options.map(({ name }) => name).join(", ")}`,
    );
  for (const { name, isOptional } of options)
    requireKind(call, name, given[name], isOptional, kinds[name] ?? anything);
}

function requireKind(
  call: string,
  name: string,
  value: unknown,
  isOptional: boolean,
  { fits, pass }: Kind,
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
}

interface Signature {
  readonly positions: readonly Parameter[];
  readonly options: readonly Parameter[] | undefined;
}

const signatures = new Map<string, Signature>();

function signatureOf(call: string): Signature {
  let signature = signatures.get(call);
  if (!signature) {
    const [, before = "", , inside] = /\(([^{}]*)(\{([^}]*)\})?\)$/.exec(call) ?? [];
    signature = {
      positions: parameters(before),
      options: inside?.trim() ? parameters(inside) : undefined,
    };
    signatures.set(call, signature);
  }
  return signature;
}

const parameters = (list: string): Parameter[] =>
  list
    .split(",")
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map((text) => ({ name: text.replace("?", ""), isOptional: text.endsWith("?") }));

interface Kind {
  readonly pass: string;
  fits(value: unknown): boolean;
}

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

const heightAndWidth: Kind = {
  pass: "a whole number above 0, or [height, width]",
  fits: (value) => isCount(value) || (counts.fits(value) && (value as unknown[]).length === 2),
};

const kinds: Readonly<Record<string, Kind | undefined>> = {
  runtime: {
    pass: "gpuRuntime(device) or cpuRuntime()",
    fits: (value) => hasMethod(value, "variable"),
  },
  generator: { pass: "new Generator(seed)", fits: (value) => hasMethod(value, "uint32") },
  seed: {
    pass: "a whole number from 0 to 2^53 − 1",
    fits: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  },
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
  eps: {
    pass: "a number from 0 on",
    fits: (value) => Number.isFinite(value) && (value as number) >= 0,
  },
  beta: {
    pass: "a number above 0",
    fits: (value) => Number.isFinite(value) && (value as number) > 0,
  },
  dropout: {
    pass: "a probability from 0 to 1",
    fits: (value) => typeof value === "number" && value >= 0 && value <= 1,
  },
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
