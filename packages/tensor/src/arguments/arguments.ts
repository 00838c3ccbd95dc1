import { DTypeError } from "@halfstep/autocast";
import { ArgumentError, ShapeError } from "../errors.js";
import { isOptions } from "./is-options.js";
import { isTensor } from "./is-tensor.js";
import type { Kind, ParameterKinds } from "./kinds.js";

/** Checks the arguments of one function; its errors name the function. */
export type ArgumentCheck = (given: readonly unknown[]) => void;

/**
 * Makes the check of a function's arguments. Functions and methods of tensors and user-defined ops all use it.
 *
 * @throws ArgumentError that names the function, the parameter, what it takes, and what was given
 */
export function argumentCheck(name: string, parameters: ParameterKinds): ArgumentCheck {
  const names = Object.keys(parameters);
  const kinds = Object.values(parameters);
  const hasRest = kinds.at(-1)?.isRest === true;
  return (given) => {
    const { length } = given;
    if (length > kinds.length && !hasRest) {
      const extra = given.findLastIndex((value) => value !== undefined);
      if (extra >= kinds.length)
        throw new ArgumentError(
          `${headOf(name, parameters)} takes ${counted(kinds.length)}, not ${extra + 1}`,
        );
    }
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i] as Kind;
      const value = given[i];
      if (kind.isRest) {
        for (let r = i; r < length; r++)
          if (!kind.accepts(given[r]))
            refuse(name, parameters, `${names[i]} ${r - i}`, kind, given[r]);
      } else if (!(value === undefined && kind.isOptional) && !kind.accepts(value))
        refuse(name, parameters, names[i] as string, kind, value);
    }
  };
}

const known = new WeakMap<object, ParameterKinds>();

/** The parameters that a function checks; undefined where it checks none. */
export const parametersOf = (checkedFunction: object): ParameterKinds | undefined =>
  known.get(checkedFunction);

/** Records the parameters that a function checks. */
export function declare<F extends object>(checkedFunction: F, parameters: ParameterKinds): F {
  known.set(checkedFunction, parameters);
  return checkedFunction;
}

/** Wraps a function so that it checks its arguments before it runs. */
export function checked<F extends (...given: never[]) => unknown>(
  name: string,
  parameters: ParameterKinds,
  body: F,
): F {
  const check = argumentCheck(name, parameters);
  const run = body as unknown as (...given: readonly unknown[]) => unknown;
  const call = (...given: readonly unknown[]): unknown => {
    try {
      check(given);
      return run(...given);
    } catch (error) {
      throw atCaller(error, call);
    }
  };
  declare(call, parameters);
  return Object.defineProperty(call, "name", { value: name }) as unknown as F;
}

interface StackCapture {
  captureStackTrace?(error: object, below: unknown): void;
}

/**
 * The error of a wrong call, with a stack trace that begins where `called` was called: engines keep ten frames, and ops nest deeper.
 */
function atCaller(error: unknown, called: unknown): unknown {
  const isMistake =
    error instanceof ShapeError || error instanceof DTypeError || error instanceof ArgumentError;
  if (isMistake) (Error as StackCapture).captureStackTrace?.(error, called);
  return error;
}

/** `softmax(x, axis?, options?):` */
const headOf = (name: string, parameters: ParameterKinds): string =>
  `${name}(${Object.entries(parameters)
    .map(
      ([parameter, kind]) => `${kind.isRest ? "..." : ""}${parameter}${kind.isOptional ? "?" : ""}`,
    )
    .join(", ")}):`;

const counted = (count: number): string => (count === 1 ? "1 argument" : `${count} arguments`);

function refuse(
  name: string,
  parameters: ParameterKinds,
  parameter: string,
  kind: Kind,
  value: unknown,
): never {
  const head = headOf(name, parameters);
  const { members } = kind;
  if (members && isOptions(value)) refuseMember(head, parameter, members, value);
  const hint = /\btensor\b/.test(kind.what) ? "; runtime.tensor() makes tensors" : "";
  throw new ArgumentError(
    value === undefined
      ? `${head} ${parameter} is missing; it must be ${kind.what}`
      : `${head} ${parameter} must be ${kind.what}, not ${described(value)}${hint}`,
  );
}

function refuseMember(
  head: string,
  parameter: string,
  members: ParameterKinds,
  value: Readonly<Record<string, unknown>>,
): void {
  const known = Object.keys(members);
  for (const [member, given] of Object.entries(value)) {
    const kind = members[member];
    if (!kind)
      throw new ArgumentError(
        `${head} ${parameter} has no ${member}; did you mean ${nearest(member, known)}? It takes { ${known.join(", ")} }`,
      );
    if (given !== undefined && !kind.accepts(given))
      throw new ArgumentError(
        `${head} ${parameter}.${member} must be ${kind.what}, not ${described(given)}`,
      );
  }
  for (const [member, kind] of Object.entries(members))
    if (!kind.isOptional && value[member] === undefined)
      throw new ArgumentError(`${head} ${parameter}.${member} is missing; it must be ${kind.what}`);
}

/** A value in a few words. */
export function described(value: unknown): string {
  if (isTensor(value)) return `a tensor of shape [${value.shape}]`;
  if (typeof value === "string") return JSON.stringify(value.slice(0, 40));
  if (Array.isArray(value))
    return value.some(isTensor)
      ? "a list with tensors"
      : `[${value.slice(0, 4).map(String)}${value.length > 4 ? ",…" : ""}]`;
  if (typeof value === "function") return "a function";
  if (typeof (value as PromiseLike<unknown> | null)?.then === "function")
    return "a promise: await it";
  if (typeof value === "object" && value !== null)
    return `an object { ${Object.keys(value).slice(0, 4).join(", ")} }`;
  return String(value);
}

/** The known name with the fewest edits from a wrong one; case is ignored. */
function nearest(wrong: string, known: readonly string[]): string {
  const plain = (name: string): string => name.toLowerCase().replaceAll("_", "");
  const distances = known.map((name) => editDistance(plain(wrong), plain(name)));
  return known[distances.indexOf(Math.min(...distances))] as string;
}

/** Levenshtein's distance, but letters missing at the end cost half: "keepDim" is nearer to "keepDimensions" than to "dtype". */
function editDistance(a: string, b: string): number {
  if (b.startsWith(a) || a.startsWith(b)) return Math.abs(a.length - b.length) / 2;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}
