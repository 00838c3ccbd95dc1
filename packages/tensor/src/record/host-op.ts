import type { Binding, Kernel, KernelBinding, Launch } from "@halfstep/device";
import { allDTypes } from "@halfstep/formats/dtypes";
import { RecordingError } from "../errors.js";

/** The part of a recorded host op that one call of its function carries out. */
export interface HostPart {
  /** Its number among the parts of the op, in the order of calls, and how many there are: 0 and 1 for an op that is not divided. */
  readonly index: number;
  readonly count: number;
  /** The elements of the op's first binding that it covers. */
  readonly offset: number;
  readonly length: number;
  /** Present for a part to which the op adds rows: see {@link CarryRows}. */
  readonly rows?: RowsOfPart;
}

/** What a call is about: the elements before rows are added, as soon as they are computed; or the rows, and with them the result. */
export type RowStage = "rest" | "rows";

/** A call for a part to which rows are added. */
export interface RowsOfPart {
  readonly stage: RowStage;
  /** Numbers of a row: the part has `length / width` places. */
  readonly width: number;
}

/**
 * The function of a host op. It gets the bytes of each binding: the contents of those that the op reads, and memory to fill for those that
 * it writes. The arrays are valid until it resolves. A runner calls one function at a time, in program order.
 */
export type HostFunction = (
  operands: readonly Uint8Array<ArrayBuffer>[],
  part: HostPart,
) => Promise<void>;

/** The launches and operands that carry out a part of a host op. */
export interface CarriedPart<B> {
  /** Launches that prepare the operands. */
  readonly before: readonly Launch<B>[];
  /** The bindings that the function gets, and their roles. */
  readonly operands: readonly { readonly binding: Binding<B>; readonly role: KernelBinding }[];
  /** Launches that take the results, before anything else uses them. */
  readonly after: readonly Launch<B>[];
}

/**
 * How a part of the first binding of a host op is carried out: each of its elements is computed alone. A pure function. `allocate` gives
 * memory of the step, and `others` are the further bindings of the op.
 */
export type Divide = <B>(
  part: Binding<B>,
  allocate: (bytes: number) => B,
  place: HostPart,
  others: readonly Binding<B>[],
) => CarriedPart<B>;

/** A part of the first binding of a host op whose last term is a sum of rows by index: the gradient of an embedding. */
export interface AddedRows<B> {
  /** The part: float32 [places, width]. */
  readonly sum: Binding<B>;
  /** uint32 [count]: the place to which each row is added. Rows of places that do not exist are left out. */
  readonly index: Binding<B>;
  /** float32 [count, width] */
  readonly rows: Binding<B>;
}

/**
 * How a stage of a part with rows is carried out: a pure function. `sum` holds what comes before the rows from the stage "rest" on; the launch
 * that would add the rows is left out. The function of the stage "rows" gives `sum` its result. Without a stage "rest" there are rows alone.
 */
export type CarryRows = <B>(
  rows: AddedRows<B>,
  stage: RowStage,
  allocate: (bytes: number) => B,
) => CarriedPart<B>;

/** The limits of dividing a host op. */
export interface Division {
  readonly carry: Divide;
  /**
   * Present for an op that adds rows itself. A tied embedding is computed early but for the rows of its batch, which come last: such parts of
   * more than `leastBytes` are then carried out in two stages. Default: their sum is one part as any other.
   */
  readonly carryRows?: CarryRows;
  /** Most parts. */
  readonly parts: number;
  /** Least bytes of the first binding in a part. */
  readonly leastBytes: number;
}

/** A kernel that a function of the host carries out. */
export interface HostOp extends Kernel {
  /** Present where the planner may divide the op. */
  readonly division: Division | undefined;
  /** Whether the state of the step may change before it. */
  readonly isFinal: boolean;
}

/** A use of a host op, recorded beside launches. */
export interface HostLaunch<B> extends Launch<B> {
  readonly kernel: HostOp;
  /** Not part of a plan: each recording has its own. */
  readonly call: HostFunction;
}

/** Definition of a host op. */
export interface HostOpDefinition {
  /** For people: errors and dumps. */
  readonly name: string;
  /** The roles of its bindings. `dtypes` are by default all that kernels take. */
  readonly bindings: readonly KernelBinding[];
  /**
   * Makes the op one of elements: the planner carries it out in parts of its first binding, each as soon as its elements are computed.
   * Absent: the function gets the bindings as recorded, in one call.
   */
  readonly division?: Division;
  /**
   * True for an op that passes on what the step has made of its state, such as updated parameters. The state then changes before it, and
   * where its function fails, parts of the step have happened: a program goes on from a checkpoint. Default false: the state of a step
   * changes when all functions have succeeded.
   */
  readonly isFinal?: boolean;
}

const hostOps = new WeakSet<Kernel>();
const hostBindings = new WeakSet<KernelBinding>();

/** The kernel of a host op. */
export function hostKernel({
  name,
  bindings,
  division,
  isFinal = false,
}: HostOpDefinition): HostOp {
  const refuse = (): never => {
    throw new RecordingError(
      `host op "${name}" was launched on a device: launch it on the target of a runtime, whose steps wait for its function`,
    );
  };
  const op: HostOp = {
    name,
    variant: "",
    bindings: bindings.map((binding) => ({ dtypes: allDTypes, ...binding })),
    scalars: [],
    division,
    isFinal,
    program: refuse,
    reference: refuse,
  };
  hostOps.add(op);
  for (const binding of op.bindings) hostBindings.add(binding);
  return op;
}

/** A use of a host op, to be launched on the target of a runtime. */
export const hostLaunch = <B>(
  kernel: HostOp,
  bindings: readonly Binding<B>[],
  call: HostFunction,
): HostLaunch<B> => ({ kernel, bindings, scalars: {}, call });

/** Whether a kernel is carried out by a function of the host. */
export const isHostOp = (kernel: Kernel): kernel is HostOp => hostOps.has(kernel);

/** Whether a binding is one of a host op: it is bound as recorded, and no pass changes it. */
export const isHostBinding = (binding: KernelBinding): boolean => hostBindings.has(binding);
