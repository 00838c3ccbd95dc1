import { readdirSync, readFileSync } from "node:fs";
import type { Device, LaunchTarget } from "@halfstep/device";

export type Launches = (target: LaunchTarget<GPUBuffer>) => void;

export interface Time {
  /** Milliseconds of the best run: of the GPU, or on a software adapter of all CPU cores together. */
  readonly best: number;
  /** Wall milliseconds of the first run, which compiles. */
  readonly first: number;
}

/**
 * Times of variants of one computation. The variants alternate, so that other load on the machine slows all alike. On a
 * software adapter (in Linux) it measures the CPU time of the driver's threads, which hardly depends on other load.
 */
export async function measure<Name extends string>(
  device: Device,
  variants: Readonly<Record<Name, Launches>>,
  repeats = 7,
): Promise<Readonly<Record<Name, Time>>> {
  const names = Object.keys(variants) as Name[];
  const best = new Map<Name, number>();
  const first = new Map<Name, number>();
  const isSoftware = device.capabilities.hardware.class === "software";
  const encoder = device.encoder();
  const run = async (launches: Launches): Promise<number> => {
    const scratch: GPUBuffer[] = [];
    const target: LaunchTarget<GPUBuffer> = {
      launch: (launch) => encoder.launch(launch),
      allocate(bytes) {
        const buffer = encoder.allocate(bytes);
        scratch.push(buffer);
        return buffer;
      },
    };
    launches(target);
    const threads = isSoftware ? driverMilliseconds() : undefined;
    const start = performance.now();
    const { milliseconds } = await device.timed(() => encoder.submit());
    await device.settled();
    const wall = performance.now() - start;
    for (const buffer of scratch) device.release(buffer);
    return threads === undefined ? (milliseconds ?? wall) : driverMilliseconds() - threads;
  };
  for (const name of names) {
    const start = performance.now();
    await run(variants[name]);
    first.set(name, performance.now() - start);
  }
  for (let i = 0; i < repeats; i++)
    for (const name of names)
      best.set(name, Math.min(best.get(name) ?? Infinity, await run(variants[name])));
  return Object.fromEntries(
    names.map((name) => [name, { best: best.get(name) ?? 0, first: first.get(name) ?? 0 }]),
  ) as Record<Name, Time>;
}

/** CPU time of this process's threads, except the main one, which polls. */
function driverMilliseconds(): number {
  let nanoseconds = 0;
  for (const thread of readdirSync("/proc/self/task"))
    if (thread !== String(process.pid))
      try {
        const [running] = readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ");
        nanoseconds += Number(running);
      } catch {
        // The thread has ended; it was not one of the driver's.
      }
  return nanoseconds / 1e6;
}
