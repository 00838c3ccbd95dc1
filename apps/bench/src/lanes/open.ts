import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Case, Precision, Prepared } from "../workload.js";
import { type HalfstepLibrary, halfstepLibrary } from "./halfstep.js";
import type { JaxLibrary } from "./jax.js";
import type { LaneName } from "./names.js";
import type { OnnxLibrary } from "./onnx.js";
import type { TfjsLibrary } from "./tfjs.js";

/** A library that is ready to compute. */
export interface Lane {
  readonly version: string;
  /** Undefined where the library cannot do this. */
  prepare(chosen: Case, precision: Precision): Promise<Prepared> | undefined;
  /** Resolves when all that was submitted is done. */
  drain(): Promise<void>;
}

export interface OpenOptions {
  /** Where the peers are installed. */
  readonly peersFolder: string;
  /** Sees every device before the library does. */
  readonly onDevice: (device: GPUDevice) => void;
  /** Awaited before a library waits for its device. */
  readonly beforeWait: () => Promise<void>;
}

interface Peer<L> {
  readonly version: string;
  readonly library: L;
  drain(): Promise<void>;
}

export async function openLane(
  { library, backend }: LaneName,
  { peersFolder, onDevice, beforeWait }: OpenOptions,
): Promise<Lane> {
  if (library === "halfstep") {
    const own: HalfstepLibrary = halfstepLibrary(onDevice);
    return {
      version: "this repository",
      prepare: ({ on }, precision) => on.halfstep?.(own, precision),
      async drain() {},
    };
  }
  const { open } = await import(pathToFileURL(join(peersFolder, `${library}.mjs`)).href);
  const adapter = process.env.HALFSTEP_ADAPTER || undefined;
  const peer: Peer<unknown> = await open(backend, { adapter, onDevice, beforeWait });
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
