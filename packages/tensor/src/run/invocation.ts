import type { Binding } from "@halfstep/device";
import { residentNumbers } from "../plan/plan.js";
import type { Recording } from "../recording.js";
import { type HostData, memoryOf, type Storage } from "../storage.js";
import type { Invocation } from "./runner.js";

/** What a recording gives to the plan that it runs by. */
export const invocationOf = (
  recording: Recording,
  residents: Iterable<Storage> = residentNumbers(recording).keys(),
): Invocation => ({
  residents: Array.from(residents, memoryOf),
  inputs: recording.inputs.map((storage) => ({
    data: storage.hostData as HostData,
    binding: storage.inputBinding as Omit<Binding<never>, "buffer">,
  })),
  scalar: (launch, name) => recording.launches[launch]?.scalars[name] as number,
});
