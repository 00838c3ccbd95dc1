import { bytesFor } from "@halfstep/formats/dtypes";
import type { PlannedHostOp } from "../plan/host-ops.js";
import type { Plan } from "../plan/plan.js";
import type { HostFunction, HostOp } from "../record/host-op.js";
import type { HostCall, HostCalls } from "./host-calls.js";

/** The operands of a host op, in memory of the host. */
export type HostOperands = readonly Uint8Array<ArrayBuffer>[];

/** The parts of a runner that carry out segments of one run. */
export interface SegmentWork {
  /** Calls `work` in order with everything else of the runner, and after `ready`. Calls `lost` where that is not possible. */
  enqueue(work: () => void, ready: Promise<unknown> | undefined, lost: () => void): void;
  /** Runs the launches from one position up to a later one; with a host op behind them, copies its operands to the host. */
  run(from: number, to: number, op?: PlannedHostOp): void;
  /** Resolves when the operands of a host op have arrived. */
  operands(op: PlannedHostOp): { readonly arrived: Promise<void>; readonly arrays: HostOperands };
  /** Stores what the function of a host op has written. */
  store(op: PlannedHostOp): void;
}

/** A host op whose results are not stored yet. */
interface Awaited {
  readonly op: PlannedHostOp;
  readonly call: HostCall;
}

/**
 * Runs a plan in segments, which host ops divide. Where a function fails, the launches of this run that wait for it and all that follow are
 * left out.
 */
export class Segments {
  readonly #plan: Plan;
  readonly #calls: HostCalls;
  readonly #work: SegmentWork;
  readonly #functions: readonly HostFunction[];
  #awaited: Awaited[] = [];

  /** @param functions those of the plan's host ops. */
  constructor(plan: Plan, calls: HostCalls, functions: readonly HostFunction[], work: SegmentWork) {
    this.#plan = plan;
    this.#calls = calls;
    this.#functions = functions;
    this.#work = work;
  }

  /** Runs launches and host ops from one position up to a later one, and stores all results. */
  runRange(from: number, to: number): void {
    const start = this.#runHostOps(from, to);
    this.#runSegment(start, to);
    const awaited = this.#awaited.splice(0);
    if (awaited.length > 0) this.#enqueue(awaited, () => {});
  }

  /**
   * Runs the rest.
   *
   * @param end runs the launches from a position on, and whatever ends the run.
   * @param lost called instead where a function has failed.
   */
  finish(from: number, end: (from: number) => void, lost: () => void): void {
    const start = this.#runHostOps(from, this.#plan.launches.length);
    this.#enqueue(this.#awaited.splice(0), () => end(start), lost);
  }

  /** Runs everything up to the last host op in a range, and returns the position behind it. */
  #runHostOps(from: number, to: number): number {
    let start = from;
    for (const [i, op] of this.#plan.hostOps.entries()) {
      if (op.position < from || op.position >= to) continue;
      this.#runSegment(start, op.position, op, this.#functions[i]);
      start = op.position + 1;
    }
    return start;
  }

  #runSegment(from: number, to: number, op?: PlannedHostOp, fn?: HostFunction): void {
    const awaited = this.#awaited.filter((each) => each.op.awaitedAt <= from);
    this.#awaited = this.#awaited.filter((each) => each.op.awaitedAt > from);
    if (!op || !fn) {
      if (to > from || awaited.length > 0) this.#enqueue(awaited, () => this.#work.run(from, to));
      return;
    }
    const { launch } = this.#plan.launches[op.position] as Plan["launches"][number];
    const call = this.#calls.open(launch.kernel as HostOp);
    this.#awaited.push({ op, call });
    this.#enqueue(
      awaited,
      () => {
        this.#work.run(from, to, op);
        const { arrived, arrays } = this.#work.operands(op);
        call.begin(arrived, () => fn(arrays, op.part));
      },
      call.drop,
    );
  }

  /** Enqueues work that stores the results of host ops first; where a function has failed, `lost` is called instead. */
  #enqueue(awaited: readonly Awaited[], work: () => void, lost: () => void = () => {}): void {
    const calls = awaited.map(({ call }) => call.ended);
    let isLater = false;
    this.#work.enqueue(
      () => {
        if (this.#calls.failure) {
          lost();
          return;
        }
        try {
          for (const { op } of awaited) this.#work.store(op);
          work();
        } catch (error) {
          // The caller gets the error of work that is called at once.
          if (isLater) this.#calls.fail(error);
          lost();
          throw error;
        }
      },
      calls.length > 0 ? Promise.all(calls) : undefined,
      lost,
    );
    isLater = true;
  }
}

/** Host memory for the operands of a host op, each of whole words. */
export function hostMemoryOf(plan: Plan, { position }: PlannedHostOp): HostOperands {
  const { bindings } = (plan.launches[position] as Plan["launches"][number]).launch;
  return bindings.map(({ dtype, length }) => {
    const bytes = bytesFor(dtype, length);
    return new Uint8Array(new ArrayBuffer(Math.ceil(bytes / 4) * 4), 0, bytes);
  });
}
