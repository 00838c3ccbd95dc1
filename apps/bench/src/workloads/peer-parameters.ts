import type { Module } from "@halfstep/nn";
import { cpuRuntime, type Runtime } from "@halfstep/tensor";

/** A parameter of a model here, for other libraries to start from. */
export interface PeerParameter {
  /** Its path in the model. */
  readonly path: string;
  readonly values: Float32Array;
  readonly shape: readonly number[];
}

/** The initial parameters of the model that `make` makes. */
export const peerParameters = (make: (runtime: Runtime) => Module): Promise<PeerParameter[]> =>
  Promise.all(
    [...make(cpuRuntime()).namedParameters()].map(async ([path, parameter]) => ({
      path,
      values: Float32Array.from(await parameter.toArray()),
      shape: parameter.shape,
    })),
  );
