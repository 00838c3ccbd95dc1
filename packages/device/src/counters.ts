/** Counts of a device's operations since it was opened. */
export interface CounterValues {
  /** Calls of `queue.submit`, those of read-backs included. */
  submits: number;
  /** Compute dispatches encoded. */
  dispatches: number;
  /** Buffers of every kind created, scalars and staging included. */
  buffersCreated: number;
  bindGroupsCreated: number;
  pipelinesCreated: number;
  /** Calls of `queue.writeBuffer`. */
  writes: number;
  /** Calls of `Device.read`. */
  reads: number;
  /** Times that the host waited for the device for a result. */
  hostWaits: number;
  /** Times that the host waited because it was too far ahead of the device. */
  backpressureWaits: number;
  /** Functions of the host for which submitted work had to wait, such as exchanges with other processes. */
  exchangeWaits: number;
}

const names = [
  "submits",
  "dispatches",
  "buffersCreated",
  "bindGroupsCreated",
  "pipelinesCreated",
  "writes",
  "reads",
  "hostWaits",
  "backpressureWaits",
  "exchangeWaits",
] as const satisfies readonly (keyof CounterValues)[];

/** Plain numbers that only increase. `snapshot()` before and `since()` after give the cost of an operation. */
export class Counters implements CounterValues {
  submits = 0;
  dispatches = 0;
  buffersCreated = 0;
  bindGroupsCreated = 0;
  pipelinesCreated = 0;
  writes = 0;
  reads = 0;
  hostWaits = 0;
  backpressureWaits = 0;
  exchangeWaits = 0;

  /** A copy of the present values. */
  snapshot(): CounterValues {
    return collect((name) => this[name]);
  }

  /** The difference from an earlier snapshot. */
  since(earlier: Readonly<CounterValues>): CounterValues {
    return collect((name) => this[name] - earlier[name]);
  }
}

const collect = (value: (name: keyof CounterValues) => number): CounterValues =>
  Object.fromEntries(names.map((name) => [name, value(name)])) as unknown as CounterValues;
