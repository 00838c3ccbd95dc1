/** The child's side of a lane: one library in its own process, which handles one request of the parent at a time. */
import { paced } from "@halfstep/device";
import { CallMeter, type Calls, callsPerStep } from "./calls.js";
import { cpuTime, workOf } from "./cpu-clock.js";
import { type KernelTime, kernelTimes } from "./kernel-clock.js";
import { laneNames, limitsLane } from "./lanes/names.js";
import { type Lane, openLane } from "./lanes/open.js";
import type { Facts, Precision, Prepared } from "./lanes/prepared.js";
import { median } from "./statistics.js";
import type { Case, Workload } from "./workload.js";
import { workloads } from "./workloads/index.js";
import { limitCases } from "./workloads/limits.js";

/** Which computation: a case of a workload, or of the machine's limits. */
export interface Subject {
  readonly workload: string;
  readonly name: string;
  readonly precision: Precision;
}

export type Request =
  | { readonly kind: "open"; readonly lane: string; readonly peersFolder: string }
  | { readonly kind: "prepare"; readonly subject: Subject }
  /** Untimed runs, what one of them takes, and what it counts. Brief ones are enough where another process had them all. */
  | { readonly kind: "warmUp"; readonly subject: Subject; readonly isBrief: boolean }
  | { readonly kind: "time"; readonly subject: Subject; readonly calls: number }
  | { readonly kind: "close" };

export interface Opened {
  readonly version: string;
}

export interface Made {
  /** Undefined where the library cannot do this. */
  readonly result: Float32Array | undefined;
}

export interface WarmedUp {
  readonly milliseconds: number;
  /** Time of the host alone for one call, which the device may outlast. */
  readonly hostMicroseconds: number;
  readonly callsPerStep: Calls;
  /** Most bytes of GPU buffers beyond those that were there before. */
  readonly peakBytes: number;
  readonly facts: Facts | undefined;
  /** Where the time of one call goes, of our own lane. */
  readonly kernels: readonly KernelTime[] | undefined;
}

export interface Timed {
  /** Of one call, the mean of as many as were asked for. */
  readonly milliseconds: number;
  /** CPU time of one call, all threads together; undefined where the system does not report it. */
  readonly cpuMilliseconds: number | undefined;
}

/** Anything above this and a repetition more costs too much. */
const slow = 2000;

interface Ready {
  readonly prepared: Prepared;
  /** The device that the library opened for it, if it opened one. */
  readonly device: GPUDevice | undefined;
  /** Bytes of its own buffers once it was prepared, and the most until then. */
  readonly ownBytes: number;
  readonly preparedPeak: number;
  /** Shortest time of a call so far. */
  estimate: number;
}

export class LaneProcess {
  readonly #meter: CallMeter = new CallMeter();
  readonly #ready: Map<string, Ready> = new Map();
  #isMeterInstalled = false;
  #latestDevice: GPUDevice | undefined;
  #lane: Lane | undefined;

  async answer(request: Request): Promise<unknown> {
    switch (request.kind) {
      case "open":
        return this.#open(request.lane, request.peersFolder);
      case "prepare":
        return this.#prepare(request.subject);
      case "warmUp":
        return this.#warmUp(this.#readyFor(request.subject), request.isBrief);
      case "time":
        return this.#time(this.#readyFor(request.subject), request.calls);
      case "close":
        for (const { prepared } of this.#ready.values()) prepared.dispose?.();
        return undefined;
    }
  }

  async #open(name: string, peersFolder: string): Promise<Opened> {
    const lane = [...laneNames, limitsLane].find((candidate) => candidate.name === name);
    if (!lane) throw new RangeError(`there is no lane ${name}`);
    this.#lane = await openLane(lane, {
      peersFolder,
      python: process.env.HALFSTEP_BENCH_PYTHON ?? "python3",
      wait: paced,
      onDevice: (device) => {
        if (!this.#isMeterInstalled) this.#meter.install(device);
        this.#isMeterInstalled = true;
        this.#latestDevice = device;
      },
    });
    return { version: this.#lane.version };
  }

  async #prepare(subject: Subject): Promise<Made> {
    const baseBytes = this.#meter.liveBytes;
    this.#meter.resetPeak();
    const chosen = caseOf(subject);
    this.#latestDevice = undefined;
    const prepared = await this.#lane?.prepare(chosen, subject.precision);
    if (!prepared) return { result: undefined };
    const device = this.#latestDevice;
    const result = await prepared.result();
    const ownBytes = this.#meter.liveBytes - baseBytes;
    const preparedPeak = this.#meter.peakBytes - baseBytes;
    const estimate = Number.POSITIVE_INFINITY;
    this.#ready.set(keyOf(subject), { prepared, device, ownBytes, preparedPeak, estimate });
    return { result };
  }

  async #warmUp(ready: Ready, isBrief: boolean): Promise<WarmedUp> {
    const { prepared } = ready;
    // Other subjects have memory in this process by now.
    const othersBytes = this.#meter.liveBytes - ready.ownBytes;
    this.#meter.resetPeak();
    await this.#time(ready, 1);
    if (!isBrief && ready.estimate < slow) for (let i = 0; i < 2; i++) await this.#time(ready, 1);
    const hostTimes: number[] = [];
    // Some libraries wait after every other step: an even number counts as many waits from any step on.
    const steps = ready.estimate >= slow ? 1 : isBrief ? 2 : 4;
    const before = this.#meter.snapshot();
    for (let i = 0; i < steps; i++) {
      const start = performance.now();
      await this.#wait(prepared.run());
      hostTimes.push(performance.now() - start);
      await this.#drain(prepared);
    }
    const calls = callsPerStep(before, this.#meter.snapshot(), steps);
    const peakBytes = Math.max(ready.preparedPeak, this.#meter.peakBytes - othersBytes);
    const kernels =
      ready.device &&
      (await kernelTimes(ready.device, async () => {
        await prepared.run();
        await this.#drain(prepared);
      }));
    return {
      milliseconds: ready.estimate,
      hostMicroseconds: median(hostTimes) * 1000,
      callsPerStep: calls,
      peakBytes,
      facts: prepared.facts?.(),
      kernels,
    };
  }

  async #time(ready: Ready, calls: number): Promise<Timed> {
    const before = cpuTime();
    const start = performance.now();
    for (let i = 0; i < calls; i++) await this.#wait(ready.prepared.run());
    const waiting = cpuTime();
    await this.#drain(ready.prepared);
    const milliseconds = (performance.now() - start) / calls;
    ready.estimate = Math.min(ready.estimate, milliseconds);
    if (this.#lane?.isElsewhere) return { milliseconds, cpuMilliseconds: undefined };
    // Without WebGPU nothing polls, so the main thread's CPU time during the wait is work.
    const after = cpuTime();
    const work = this.#isMeterInstalled
      ? workOf(before, waiting, after)
      : after.process - before.process;
    return { milliseconds, cpuMilliseconds: work === undefined ? work : work / calls };
  }

  async #drain(prepared: Prepared): Promise<void> {
    await this.#wait(prepared.drain ? prepared.drain() : this.#lane?.drain());
  }

  /** Dawn in Node polls while a promise is pending, which takes a core from a software adapter: libraries on it wait alike. */
  async #wait(work: ReturnType<Prepared["run"]>): Promise<void> {
    await (work && this.#isMeterInstalled ? paced(work) : work);
  }

  #readyFor(subject: Subject): Ready {
    const ready = this.#ready.get(keyOf(subject));
    if (!ready) throw new RangeError(`${keyOf(subject)} was not prepared`);
    return ready;
  }
}

const keyOf = ({ workload, name, precision }: Subject): string =>
  `${workload}/${name}/${precision}`;

export const limitsName = "limits";

function caseOf({ workload, name }: Subject): Case {
  const cases: readonly Case[] | undefined =
    workload === limitsName
      ? [...limitCases(true), ...limitCases(false)]
      : workloads.find((candidate: Workload) => candidate.name === workload)?.cases;
  const found = cases?.find((candidate) => candidate.name === name);
  if (!found) throw new RangeError(`there is no case ${name} in workload ${workload}`);
  return found;
}

/** Answers the parent until it disconnects. */
export function serveLane(): void {
  const lane = new LaneProcess();
  process.on("disconnect", () => process.exit(0));
  process.on("message", ({ id, request }: { id: number; request: Request }) => {
    lane.answer(request).then(
      (value) => process.send?.({ id, value }),
      (error: unknown) => process.send?.({ id, error: messageOf(error) }),
    );
  });
}

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] as string;
