// `instanceof` looks for this brand, so that an error thrown by another copy of the package is recognised too.
const brand = Symbol.for("@halfstep/TorchFileError");

/** The problem, for programs; the message describes it for people. */
export type TorchFileProblem =
  /** The file is of another kind: the message names it. */
  | "kind"
  /** The file ends before its contents do. */
  | "truncated"
  /** The zip archive is damaged, or no archive of torch's. */
  | "archive"
  /** The pickle is malformed, or has an opcode that is not on the list. */
  | "pickle"
  /** The pickle names a function that runs commands or code where Python loads it. */
  | "hostile"
  /** No tensors were found, or several sets of them. */
  | "state-dict"
  | "dtype"
  /** Sizes, strides and the storage of a tensor contradict each other. */
  | "shape"
  /** The storage has another size than the pickle says. */
  | "storage"
  /** A kind of tensor that is not read: sparse, quantized. */
  | "unsupported"
  /** The file asks for more memory than its length justifies. */
  | "too-large"
  /** The file has no tensor of that name. */
  | "unknown-tensor";

/** The place of a problem. */
export interface TorchFileLocation {
  /** The file, or the name that the caller gave to the bytes. */
  readonly source?: string | undefined;
  readonly tensor?: string | undefined;
  /** The byte of the pickle. */
  readonly offset?: number | undefined;
}

/** Problems of files that torch.save() did not write so. A fact that has no remedy behind a colon gets {@link damageRemedy}. */
const damages: ReadonlySet<TorchFileProblem> = new Set(["pickle", "storage", "shape", "truncated"]);
const damageRemedy = ": download the file again, or save the state_dict() again";

/** A torch checkpoint that cannot be read. The message names the file, the fact and, where there is one, the remedy. */
export class TorchFileError extends Error {
  readonly problem: TorchFileProblem;
  readonly source: string | undefined;
  readonly tensor: string | undefined;
  readonly offset: number | undefined;

  constructor(
    problem: TorchFileProblem,
    fact: string,
    { source, tensor, offset }: TorchFileLocation = {},
  ) {
    const subject = [source, tensor === undefined ? undefined : `tensor ${quote(tensor)}`];
    const place = offset === undefined ? "" : ` (at byte ${offset} of the pickle)`;
    const remedy = damages.has(problem) && !fact.includes(": ") ? damageRemedy : "";
    super([...subject.filter((part) => part !== undefined), fact + place + remedy].join(": "));
    this.name = "TorchFileError";
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

/** A string of the file for a message: escaped and cut, since it may hold anything. */
export const quote = (text: string): string =>
  JSON.stringify(text.length > longest ? `${text.slice(0, longest)}…` : text);
