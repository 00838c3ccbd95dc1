import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Case } from "../workload.js";
import { type HalfstepLibrary, halfstepLibrary } from "./halfstep.js";
import type { JaxLibrary } from "./jax.js";
import type { LaneName } from "./names.js";
import type { OnnxLibrary } from "./onnx.js";
import type { Precision, Prepared } from "./prepared.js";
import type { TfjsLibrary } from "./tfjs.js";
import { openTorch } from "./torch.js";

/** A library that is ready to compute. */
export interface Lane {
  readonly version: string;
  /** Undefined where the library cannot do this. */
  prepare(chosen: Case, precision: Precision): Promise<Prepared> | undefined;
  /** Resolves when all submitted work is done. */
  drain(): Promise<void>;
  /** Whether it computes in a further process, whose CPU time is not measured here. */
  readonly isElsewhere?: boolean;
}

export interface OpenOptions {
  /** Where the peers are installed. */
  readonly peersFolder: string;
  /** The Python that has PyTorch. */
  readonly python: string;
  /** Sees every device before the library does. */
  readonly onDevice: (device: GPUDevice) => void;
  /** How a library's own waits for its device are awaited. */
  readonly wait: <T>(promise: Promise<T>) => Promise<T>;
}

interface Peer<L> {
  readonly version: string;
  readonly library: L;
  drain(): Promise<void>;
}

export async function openLane(
  { library, backend }: LaneName,
  { peersFolder, python, onDevice, wait }: OpenOptions,
): Promise<Lane> {
  if (library === "halfstep") {
    const own: HalfstepLibrary = halfstepLibrary(onDevice);
    return {
      version: "this repository",
      prepare: ({ on }, precision) => on.halfstep?.(own, precision),
      async drain() {},
    };
  }
  if (library === "torch") {
    const torch = await openTorch(python, peersFolder);
    return {
      version: torch.version,
      prepare: ({ on }, precision) => on.torch?.(torch.library, precision),
      async drain() {},
      isElsewhere: true,
    };
  }
  const { open } = await import(pathToFileURL(join(peersFolder, `${library}.mjs`)).href);
  const adapter = process.env.HALFSTEP_ADAPTER || undefined;
  const peer: Peer<unknown> = await open(backend, { adapter, onDevice, wait });
  return {
    version: peer.version,
    prepare({ on }, precision) {
      switch (library) {
        case "jax":
          return on.jax?.(peer.library as JaxLibrary, precision);
        case "tfjs":
          return on.tfjs?.(peer.library as TfjsLibrary, precision);
        case "onnx":
          return on.onnx?.(peer.library as OnnxLibrary, precision);
      }
    },
    drain: () => peer.drain(),
  };
}
