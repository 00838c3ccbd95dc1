import { type Device, NoAdapterError } from "@halfstep/device";
import { requestDevice } from "@halfstep/device/node";
import { engineReport } from "@halfstep/kernels";
import { cpuRuntime, type GpuRuntimeOptions, gpuRuntime, type Runtime } from "@halfstep/tensor";
import type { RunDevice } from "../summary.js";

/** Options of opening a runtime for a program. */
export interface OpenRuntimeOptions extends GpuRuntimeOptions {
  /** Part of an adapter's name, or its number: the flag `--adapter`. */
  readonly adapter?: string | undefined;
  /** The flag `--device`. Undefined: the GPU, or the CPU if there is no GPU and no adapter was named. */
  readonly device?: "gpu" | "cpu" | undefined;
  /** Called with one line each: that there is no GPU, or how the GPU multiplies matrices. */
  readonly onNote?: ((line: string) => void) | undefined;
}

/** A runtime that a program has opened, with its description. */
export interface OpenedRuntime {
  readonly runtime: Runtime;
  /** Undefined on the CPU. */
  readonly device: Device | undefined;
  /** For `summary.json`. */
  readonly described: RunDevice;
  /** Releases the device and all its memory. */
  close(): void;
}

/**
 * Opens a runtime on the GPU that the flags name, or on the CPU.
 * @throws NoAdapterError where a GPU was requested and there is none
 */
export async function openRuntime(options: OpenRuntimeOptions = {}): Promise<OpenedRuntime> {
  const { adapter, device: kind, onNote } = options;
  // A program may pass all of its flags.
  const { passes, optimizeFor, provenance, underflow, noteOps, maxInFlight, rates } = options;
  const given = { passes, optimizeFor, provenance, underflow, noteOps };
  const common = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  const device = kind === "cpu" ? undefined : await openDevice(adapter, kind, onNote);
  if (!device)
    return {
      runtime: cpuRuntime(common),
      device,
      described: { kind: "cpu", adapter: "CPU", tier: "cpu" },
      close: () => {},
    };
  for (const note of productNotes(device)) onNote?.(note);
  return {
    runtime: gpuRuntime(device, { ...common, maxInFlight, rates }),
    device,
    described: { kind: "gpu", adapter: device.label, tier: device.capabilities.tier },
    close: () => device.destroy(),
  };
}

/** How a GPU multiplies matrices, and a warning where it should do so in hardware and does not. Software adapters have one way. */
export function productNotes(device: Pick<Device, "capabilities">): readonly string[] {
  if (device.capabilities.hardware.class === "software") return [];
  const { float16, warning } = engineReport(device);
  return [`float16 products: ${float16}`, ...(warning ? [`warning: ${warning}`] : [])];
}

async function openDevice(
  adapter: string | undefined,
  kind: "gpu" | undefined,
  onNote: ((line: string) => void) | undefined,
): Promise<Device | undefined> {
  try {
    return await requestDevice(adapter === undefined ? {} : { adapter });
  } catch (error) {
    const isChosen = kind ?? adapter ?? (process.env.HALFSTEP_ADAPTER || undefined);
    if (!(error instanceof NoAdapterError) || isChosen !== undefined) throw error;
    const why = error.cause === undefined ? "" : ` (${error.message})`;
    onNote?.(`no WebGPU adapter: training on the CPU${why}`);
    return undefined;
  }
}
