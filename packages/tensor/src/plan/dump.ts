import type { Plan, PlanBuffer } from "./plan.js";

/** A plan for people: a line a launch, with its operands' storage, then the slots and the sums. */
export function dumpPlan(plan: Plan): string {
  const nameOf = ({ kind, index }: PlanBuffer): string =>
    `${kind === "slot" ? "slot" : "resident"} ${index}`;
  const lines = plan.launches.map(({ launch: { kernel, bindings } }, index) => {
    const operands = bindings.map(({ buffer, offset, length, dtype, rounding }, b) => {
      const arrow = kernel.bindings[b]?.access === "read" ? "" : "→ ";
      const place = offset === 0 ? nameOf(buffer) : `${nameOf(buffer)}+${offset}`;
      return `${arrow}${place} ${dtype}[${length}]${rounding ? ` through ${rounding}` : ""}`;
    });
    return `${String(index).padStart(4)}  ${kernel.name.padEnd(28)} ${operands.join(", ")}`;
  });
  const { recordedLaunches, launches, recordedCasts, casts, peakBytes, activationBytes } =
    plan.statistics;
  return [
    ...lines,
    `slots: ${plan.slots.map((bytes, i) => `${i}: ${bytes}`).join(", ")}`,
    `${recordedLaunches} launches recorded, ${launches} planned; ${recordedCasts} casts recorded, ${casts} left; ` +
      `${peakBytes} bytes at most, ${activationBytes} held for the backward pass`,
  ].join("\n");
}
