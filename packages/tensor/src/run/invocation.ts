import type { Binding } from "@halfstep/device";
import type { HostLaunch } from "../record/host-op.js";
import type { Recording } from "../record/recording.js";
import { type HostData, memoryOf, type Storage } from "../record/storage.js";
import type { Invocation } from "./runner.js";

/** The parts of an invocation that are not in the recording. */
export type InvocationOptions = Pick<Invocation, "onCompile" | "onEnd">;

/** The invocation of a plan with the data of a recording. */
export const invocationOf = (
  recording: Recording,
  residents: readonly Storage[],
  { onCompile, onEnd }: InvocationOptions = {},
): Invocation => ({
  residents: residents.map(memoryOf),
  inputs: recording.inputs.map((storage) => ({
    data: storage.hostData as HostData,
    binding: storage.inputBinding as Omit<Binding<never>, "buffer">,
  })),
  scalar: (launch, name) => recording.launches[launch]?.scalars[name] as number,
  hostFunction: (launch) => (recording.launches[launch] as HostLaunch<Storage>).call,
  ...(onCompile && { onCompile }),
  ...(onEnd && { onEnd }),
});
