// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/SafetensorsError");

/** The problem, for programs; the message describes it for people. */
export type SafetensorsProblem =
  /** The file ends before its header or its data does. */
  | "truncated"
  /** The header length is 0 or above the limit. */
  | "header-length"
  /** A string is not UTF-8, or has half of a surrogate pair. */
  | "encoding"
  /** The header is not the JSON that it has to be. */
  | "syntax"
  /** A key stands twice in its object. */
  | "duplicate"
  /** A tensor lacks a field, or has one that the format does not know. */
  | "field"
  | "metadata"
  | "name"
  | "dtype"
  | "shape"
  | "offsets"
  /** The offsets span another number of bytes than shape and dtype take. */
  | "size"
  | "overlap"
  /** Bytes of the data belong to no tensor. */
  | "hole"
  /** The file goes on after the last tensor. */
  | "trailing-data"
  /** The file has no tensor of that name. */
  | "unknown-tensor"
  /** The elements to write do not match dtype and shape. */
  | "data"
  /** The requested data exceeds the arrays of this JavaScript engine. */
  | "too-large";

/** The place of a problem. */
export interface SafetensorsLocation {
  /** The file, or the name that the caller gave to the bytes. */
  readonly source?: string | undefined;
  readonly tensor?: string | undefined;
  /** The byte of the file. */
  readonly offset?: number | undefined;
}

/** Problems of what a caller asks for or writes. Others are of a file, and have a remedy. */
const ofCallers: ReadonlySet<SafetensorsProblem> = new Set(["unknown-tensor", "data", "too-large"]);

const damageRemedy = ": download the file again, or save it again";
/** A whole file may have a dtype that is newer than this package. */
const dtypeRemedy = ": save the tensor in another dtype, such as F32";

/** A safetensors file that is malformed, or a tensor that cannot be stored in one. */
export class SafetensorsError extends Error {
  readonly problem: SafetensorsProblem;
  readonly source: string | undefined;
  readonly tensor: string | undefined;
  readonly offset: number | undefined;

  constructor(
    problem: SafetensorsProblem,
    fact: string,
    { source, tensor, offset }: SafetensorsLocation = {},
  ) {
    const subject = [source, tensor === undefined ? undefined : `tensor ${quote(tensor)}`];
    const place = offset === undefined ? "" : ` (at byte ${offset})`;
    const isFile = source !== undefined && !ofCallers.has(problem);
    const remedy = problem === "dtype" ? dtypeRemedy : damageRemedy;
    const ending = isFile ? remedy : "";
    super([...subject.filter((part) => part !== undefined), fact + place + ending].join(": "));
    this.name = "SafetensorsError";
    this.problem = problem;
    this.source = source;
    this.tensor = tensor;
    this.offset = offset;
    Object.defineProperty(this, brand, { value: true });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}

const longest = 80;

/** A string of the file for a message: escaped, since it may hold anything, and cut, since it may be as long as the header. */
export const quote = (text: string): string =>
  JSON.stringify(text.length > longest ? `${text.slice(0, longest)}…` : text);

/** An argument for a message about it. */
export function described(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  return /^[AEIO]/.test(kind) ? `an ${kind}` : `a ${kind}`;
}
