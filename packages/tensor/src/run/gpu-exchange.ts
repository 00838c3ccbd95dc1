import type { Device, Staging } from "@halfstep/device";
import type { PlannedHostOp } from "../plan/host-ops.js";
import type { Plan, PlanBuffer } from "../plan/plan.js";
import { type HostOperands, hostMemoryOf } from "./segments.js";

/** An operand of a host op, with its host memory in whole words. */
interface Operand {
  readonly buffer: PlanBuffer;
  readonly offset: number;
  readonly words: Uint8Array<ArrayBuffer>;
  /** Its place in the staging memory; undefined where the op does not read it. */
  readonly staged: number | undefined;
  readonly isWritten: boolean;
}

/** Carries the operands of one host op of a plan between buffers and the host, in memory that every run uses again. */
export class GpuExchange {
  /** The operands, as functions of the host get them. */
  readonly arrays: HostOperands;
  readonly #device: Device;
  readonly #operands: readonly Operand[];
  readonly #staging: Staging | undefined;

  constructor(device: Device, plan: Plan, op: PlannedHostOp) {
    const { kernel, bindings } = (plan.launches[op.position] as Plan["launches"][number]).launch;
    this.#device = device;
    this.arrays = hostMemoryOf(plan, op);
    let bytes = 0;
    this.#operands = bindings.map(({ buffer, offset }, b) => {
      const access = kernel.bindings[b]?.access;
      const words = new Uint8Array((this.arrays[b] as Uint8Array<ArrayBuffer>).buffer);
      const staged = access === "write" ? undefined : bytes;
      if (staged !== undefined) bytes += words.length;
      return { buffer, offset, words, staged, isWritten: access !== "read" };
    });
    this.#staging = bytes > 0 ? device.staging(bytes) : undefined;
  }

  /** Encodes the copies to the host. */
  copyOut(commands: GPUCommandEncoder, memoryOf: (buffer: PlanBuffer) => GPUBuffer): void {
    for (const { buffer, offset, words, staged } of this.#operands)
      if (staged !== undefined && words.length > 0)
        this.#staging?.copy(
          commands,
          { buffer: memoryOf(buffer), offset, bytes: words.length },
          staged,
        );
  }

  /** Resolves when the copies of the last submit have arrived in {@link arrays}. */
  async arrived(): Promise<void> {
    await this.#staging?.arrived((memory) => {
      for (const { words, staged } of this.#operands)
        if (staged !== undefined) words.set(memory.subarray(staged, staged + words.length));
    });
  }

  /** Writes the results back. */
  store(memoryOf: (buffer: PlanBuffer) => GPUBuffer): void {
    for (const { buffer, offset, words, isWritten } of this.#operands)
      if (isWritten && words.length > 0) this.#device.write(memoryOf(buffer), offset, words);
  }

  destroy(): void {
    this.#staging?.destroy();
  }
}
