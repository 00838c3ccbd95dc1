/** The time of one kernel of a computation. */
export interface KernelTime {
  readonly label: string;
  readonly dispatches: number;
  readonly milliseconds: number;
}

/** Dispatches that can be told apart. */
const most = 2000;

type BeginPass = (descriptor?: GPUComputePassDescriptor) => GPUComputePassEncoder;

/**
 * Runs `work` with each of its dispatches in a pass of its own between two timestamps, and gives the time of each kernel, by its
 * pipeline's label, longest first. The timestamps slow the computation down, so only the shares are meaningful. Undefined where
 * the device has no timestamps.
 */
export async function kernelTimes(
  device: GPUDevice,
  work: () => Promise<void>,
): Promise<readonly KernelTime[] | undefined> {
  if (!device.features.has("timestamp-query")) return undefined;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 * most });
  const labels: string[] = [];
  const prototype = Object.getPrototypeOf(device.createCommandEncoder()) as {
    beginComputePass: BeginPass;
  };
  const original = prototype.beginComputePass;
  prototype.beginComputePass = function (this: GPUCommandEncoder) {
    return splitPass((label) => {
      const index = 2 * labels.length;
      if (labels.length >= most) return original.call(this);
      labels.push(label);
      return original.call(this, {
        timestampWrites: {
          querySet,
          beginningOfPassWriteIndex: index,
          endOfPassWriteIndex: index + 1,
        },
      });
    });
  };
  try {
    await work();
  } finally {
    prototype.beginComputePass = original;
  }
  const stamps = await readStamps(device, querySet, 2 * labels.length);
  querySet.destroy();
  return summed(labels, stamps);
}

/** Looks like a pass, and opens one for each dispatch. */
function splitPass(open: (label: string) => GPUComputePassEncoder): GPUComputePassEncoder {
  let pipeline: GPUComputePipeline | undefined;
  const groups = new Map<number, unknown[]>();
  const dispatch =
    (method: "dispatchWorkgroups" | "dispatchWorkgroupsIndirect") =>
    (...args: unknown[]) => {
      const pass = open(pipeline?.label ?? "");
      if (pipeline) pass.setPipeline(pipeline);
      for (const group of groups.values())
        (pass.setBindGroup as (...args: unknown[]) => void)(...group);
      (pass[method] as (...args: unknown[]) => void)(...args);
      pass.end();
    };
  const split = {
    setPipeline(next: GPUComputePipeline) {
      pipeline = next;
    },
    // Offsets may be a view that the caller reuses.
    setBindGroup(index: number, group: GPUBindGroup, offsets?: Uint32Array, ...range: number[]) {
      groups.set(index, [
        index,
        group,
        ...(offsets === undefined ? [] : [offsets.slice(), ...range]),
      ]);
    },
    dispatchWorkgroups: dispatch("dispatchWorkgroups"),
    dispatchWorkgroupsIndirect: dispatch("dispatchWorkgroupsIndirect"),
    end() {},
  };
  return split as unknown as GPUComputePassEncoder;
}

async function readStamps(
  device: GPUDevice,
  querySet: GPUQuerySet,
  count: number,
): Promise<BigUint64Array> {
  const size = Math.max(16, count * 8);
  const [resolve, copySource, copyTarget, mapRead] = [0x200, 0x4, 0x8, 0x1];
  const resolved = device.createBuffer({ size, usage: resolve | copySource });
  const staging = device.createBuffer({ size, usage: copyTarget | mapRead });
  const commands = device.createCommandEncoder();
  if (count > 0) commands.resolveQuerySet(querySet, 0, count, resolved, 0);
  commands.copyBufferToBuffer(resolved, 0, staging, 0, size);
  device.queue.submit([commands.finish()]);
  await staging.mapAsync(1);
  const stamps = new BigUint64Array(staging.getMappedRange().slice(0));
  resolved.destroy();
  staging.destroy();
  return stamps;
}

function summed(labels: readonly string[], stamps: BigUint64Array): KernelTime[] {
  const times = new Map<string, { dispatches: number; milliseconds: number }>();
  for (const [i, label] of labels.entries()) {
    const time = times.get(label) ?? { dispatches: 0, milliseconds: 0 };
    time.dispatches++;
    time.milliseconds += Number((stamps[2 * i + 1] as bigint) - (stamps[2 * i] as bigint)) / 1e6;
    times.set(label, time);
  }
  return [...times]
    .map(([label, time]) => ({ label, ...time }))
    .sort((a, b) => b.milliseconds - a.milliseconds);
}
