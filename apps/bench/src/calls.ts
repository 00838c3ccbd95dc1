/** The WebGPU calls of any library, counted by wrapping the API. */
export interface Calls {
  readonly submits: number;
  readonly dispatches: number;
  readonly buffers: number;
  readonly bindGroups: number;
  readonly pipelines: number;
  readonly writes: number;
  readonly maps: number;
}

const wrapped: Readonly<Record<keyof Calls, readonly (readonly [Owner, string])[]>> = {
  submits: [["queue", "submit"]],
  dispatches: [
    ["pass", "dispatchWorkgroups"],
    ["pass", "dispatchWorkgroupsIndirect"],
  ],
  buffers: [["device", "createBuffer"]],
  bindGroups: [["device", "createBindGroup"]],
  pipelines: [
    ["device", "createComputePipeline"],
    ["device", "createComputePipelineAsync"],
  ],
  writes: [["queue", "writeBuffer"]],
  maps: [["buffer", "mapAsync"]],
};
const names = Object.keys(wrapped) as (keyof Calls)[];

type Owner = "device" | "queue" | "buffer" | "pass";
type Method = (...args: unknown[]) => unknown;

/** Counts the calls of every device in the process, and the bytes of their buffers. One of them at a time can be installed. */
export class CallMeter {
  readonly #counts: Record<keyof Calls, number> = { ...noCalls };
  readonly #sizes = new WeakMap<object, number>();
  #liveBytes = 0;
  #peakBytes = 0;

  /** Wraps the prototypes that `device` and its relatives share with all others. */
  install(device: GPUDevice): void {
    const buffer = device.createBuffer({ size: 16, usage: 0x80 });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.end();
    const objects: Record<Owner, object> = { device, queue: device.queue, buffer, pass };
    for (const name of names)
      for (const [owner, method] of wrapped[name])
        wrap(objects[owner], method, (original) => {
          const counts = this.#counts;
          return function (this: unknown, ...args) {
            counts[name]++;
            return original.apply(this, args);
          };
        });
    const meter = this;
    wrap(device, "createBuffer", (original) => {
      return function (this: unknown, ...args) {
        const made = original.apply(this, args) as GPUBuffer;
        meter.#grow(made, made.size);
        return made;
      };
    });
    wrap(buffer, "destroy", (original) => {
      return function (this: unknown) {
        meter.#shrink(this as object);
        return original.call(this);
      };
    });
    buffer.destroy();
  }

  /** Bytes of buffers that exist, and the most there were since {@link resetPeak}. Buffers left to the garbage collector count on. */
  get liveBytes(): number {
    return this.#liveBytes;
  }
  get peakBytes(): number {
    return this.#peakBytes;
  }
  resetPeak(): void {
    this.#peakBytes = this.#liveBytes;
  }

  snapshot(): Calls {
    return { ...this.#counts };
  }

  #grow(buffer: object, size: number): void {
    this.#sizes.set(buffer, size);
    this.#liveBytes += size;
    this.#peakBytes = Math.max(this.#peakBytes, this.#liveBytes);
  }

  #shrink(buffer: object): void {
    this.#liveBytes -= this.#sizes.get(buffer) ?? 0;
    this.#sizes.delete(buffer);
  }
}

export const noCalls: Calls = {
  submits: 0,
  dispatches: 0,
  buffers: 0,
  bindGroups: 0,
  pipelines: 0,
  writes: 0,
  maps: 0,
};

/** Calls between two snapshots, divided among `steps`. */
export const callsPerStep = (before: Calls, after: Calls, steps: number): Calls =>
  Object.fromEntries(
    names.map((name) => [name, (after[name] - before[name]) / steps]),
  ) as unknown as Calls;

/** Replaces a method where it is defined: on the prototype, which all objects of the class share. */
function wrap(object: object, method: string, make: (original: Method) => Method): void {
  let owner: object | null = object;
  while (owner && !Object.hasOwn(owner, method)) owner = Object.getPrototypeOf(owner);
  if (!owner) return;
  const methods = owner as Record<string, Method>;
  methods[method] = make(methods[method] as Method);
}
