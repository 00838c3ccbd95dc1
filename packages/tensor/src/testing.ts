/**
 * The contract of `Runner`, for authors of runners. It needs no test framework: each case is a name and an async function that throws an
 * error with the difference.
 */
import { getsReady, staysFailed } from "./contract/flight.js";
import type { ContractTest, RunnerSubject } from "./contract/harness.js";
import { callsTheHost, losesNothing } from "./contract/host-ops.js";
import {
  abandonsMemory,
  allocatesZeros,
  forgets,
  forgetsSomePlans,
  keepsValues,
  readsInOrder,
  refusesReleased,
  respectsBudget,
  storesEveryDType,
} from "./contract/memory.js";
import { programs } from "./contract/programs.js";
import {
  cutsAnywhere,
  opensOneRun,
  prepares,
  showsValues,
  takesValuesBetween,
} from "./contract/runs.js";
import { alternates, computes, takesOtherResidents } from "./contract/values.js";

export type { RunnerSubject } from "./contract/harness.js";

/** One test. Rejects with an `Error` that says what was expected and what was found. */
export interface ContractCase {
  readonly name: string;
  run(): Promise<void>;
}

const cases: readonly (readonly [label: string, run: ContractTest])[] = [
  ["allocates zeros", allocatesZeros],
  ["reads what was written before", readsInOrder],
  ["stores every dtype", storesEveryDType],
  ["refuses memory that was released", refusesReleased],
  ...programs.map((program) => [`computes ${program.name}`, computes(program)] as const),
  ["computes plans that take turns", alternates(programs)],
  ["runs a plan with other residents", takesOtherResidents],
  ["keeps what steps return", keepsValues],
  ["forgets plans and runs them again", forgets],
  ["forgets one plan and runs another", forgetsSomePlans],
  ["leaves all as it was where the budget is exceeded, if it can be", respectsBudget],
  ["gives back what a run took that is abandoned, if memory can run out", abandonsMemory],
  ...programs.flatMap((program) => [
    [`stops before any launch of ${program.name}`, cutsAnywhere(program)] as const,
    [`shows what each launch of ${program.name} leaves`, showsValues(program)] as const,
    [`prepares ${program.name}`, prepares(program)] as const,
  ]),
  ["takes values of the host between launches", takesValuesBetween],
  ["calls functions of the host between launches", callsTheHost],
  ["leaves all as it was where a function of the host fails", losesNothing],
  ["opens one run at a time", opensOneRun],
  ["gets ready for many steps", getsReady],
  ["stays failed, if it can fail", staysFailed],
];

/**
 * The cases that every `Runner` must pass. Cases of optional abilities, such as a memory budget, pass where the subject lacks the member
 * for them.
 *
 * @example
 * for (const { name, run } of runnerContract({ name: "mine", create: () => myRunner() })) test(name, run);
 */
export const runnerContract = (subject: RunnerSubject): readonly ContractCase[] =>
  cases.map(([label, run]) => ({ name: `${subject.name}: ${label}`, run: () => run(subject) }));
