import type { DType } from "@halfstep/device";
import type { LaunchedOp } from "./launch-notes.js";
import type { Plan, PlanBuffer, PlannedLaunch, PlannedValue } from "./plan.js";

/** Options of {@link dumpPlan}. */
export interface DumpOptions {
  /** "summary" leaves out the lists of launches and slots. Default "full". */
  readonly detail?: "full" | "summary";
}

/**
 * Describes a plan as text: its costs, the number of launches of each kernel, each launch with the ops that it computes, and
 * the values of each slot. Plans of `runtime.plan()` also have ops, shapes and names of parameters.
 *
 * Operands read `s3 f16[128×10]` (slot 3) or `fc.weight f32→f16[10×576]`: stored in float32, and rounded to float16 by the
 * kernel that loads it, where a cast was folded into that kernel. Results follow an arrow; there `f16→f32` is a value that was
 * rounded to float16 and stored in float32.
 */
export function dumpPlan(plan: Plan, { detail = "full" }: DumpOptions = {}): string {
  const summary = [...totals(plan), "", ...kernelCounts(plan)];
  if (detail === "summary") return summary.join("\n");
  return [...summary, ...launchTable(plan), "", ...slotTable(plan)].join("\n");
}

function totals({ statistics, slots, values, residents, launches, hostOps }: Plan): string[] {
  const { peakBytes, activationBytes } = statistics;
  const ofValues = values.map(({ bytes }) => bytes);
  return [
    `${launches.length} launches for ${statistics.recordedLaunches} recorded; ` +
      `${statistics.casts} casts for ${statistics.recordedCasts} recorded`,
    ...(hostOps.length > 0
      ? [`functions of the host at ${hostOps.map(({ position }) => position).join(", ")}`]
      : []),
    `memory ${size(peakBytes)}: ${slots.length} slots for ${values.length} values of ${size(sum(ofValues))}`,
    `kept for the backward pass ${size(activationBytes)}`,
    `beside ${size(sum(residents))} of parameters, gradients and other state in ${residents.length} buffers`,
    ...fullest(values, launches.length),
  ];
}

/** The values in memory at the peak. */
function fullest(values: readonly PlannedValue[], launches: number): string[] {
  const live = new Float64Array(launches);
  for (const { first, last, bytes } of values)
    for (let n = Math.max(0, first); n <= Math.min(last, launches - 1); n++)
      live[n] = (live[n] as number) + bytes;
  const at = live.indexOf(Math.max(...live));
  if (at < 0) return [];
  const roles = new Map<string, number>();
  for (const { first, last, bytes, role } of values)
    if (first <= at && at <= last) roles.set(role, (roles.get(role) ?? 0) + bytes);
  const parts = [...roles].sort(([, a], [, b]) => b - a);
  return [
    `fullest at launch ${at}: ${parts.map(([role, bytes]) => `${role} ${size(bytes)}`).join(", ")}`,
  ];
}

function kernelCounts({ launches }: Plan): string[] {
  const counts = new Map<string, number>();
  for (const { launch } of launches) {
    const dtypes = (isWanted: (access: string) => boolean): string =>
      launch.bindings
        .flatMap((binding, b) => {
          const access = launch.kernel.bindings[b]?.access ?? "read";
          return isWanted(access) ? storage(binding, access) : [];
        })
        .join(" ");
    const read = dtypes((access) => access === "read");
    const written = dtypes((access) => access !== "read");
    const line = `${launch.kernel.name} (${read}${read && " "}→ ${written})`;
    counts.set(line, (counts.get(line) ?? 0) + 1);
  }
  return [...counts].sort().map(([line, count]) => `${String(count).padStart(4)} × ${line}`);
}

function launchTable(plan: Plan): string[] {
  const rows = plan.launches.map((planned, index) => [
    String(index).padStart(4),
    planned.launch.kernel.name,
    opsOf(planned),
    operandsOf(planned),
  ]);
  const widths = [0, 1, 2].map((column) =>
    Math.min(40, Math.max(0, ...rows.map((row) => (row[column] as string).length))),
  );
  const lines: string[] = [];
  for (const [i, row] of rows.entries()) {
    const isBackward = plan.launches[i]?.isBackward;
    if (i === 0 || isBackward !== plan.launches[i - 1]?.isBackward)
      lines.push("", isBackward ? "backward and update" : "forward");
    lines.push(row.map((cell, c) => cell.padEnd(widths[c] ?? 0)).join("  "));
  }
  return lines;
}

/** "fc: linear, relu", and "fc: grad of linear" where an op computes the gradient of another. */
function opsOf({ note }: PlannedLaunch): string {
  const byModule: { module: string; names: string[] }[] = [];
  for (const op of note?.ops ?? []) {
    const name = nameOf(op);
    const last = byModule.at(-1);
    if (last?.module !== op.module) byModule.push({ module: op.module, names: [name] });
    else if (last.names.at(-1) !== name) last.names.push(name);
  }
  return byModule
    .map(({ module, names }) => `${module && `${module}: `}${names.join(", ")}`)
    .join("; ");
}

const nameOf = ({ op, backwardOf }: LaunchedOp): string =>
  backwardOf === undefined ? op : `grad of ${backwardOf}`;

function operandsOf({ launch, note }: PlannedLaunch): string {
  const reads: string[] = [];
  const writes: string[] = [];
  for (const [b, binding] of launch.bindings.entries()) {
    const access = launch.kernel.bindings[b]?.access ?? "read";
    const { shape = [binding.length], name } = note?.operands[b] ?? {};
    const place = name ?? placeOf(binding.buffer, binding.offset);
    const operand = `${place} ${storage(binding, access)}[${shape.join("×")}]`;
    (access === "read" ? reads : writes).push(operand);
  }
  return `${reads.join(", ")}${reads.length > 0 ? " " : ""}→ ${writes.join(", ")}`;
}

const placeOf = ({ kind, index }: PlanBuffer, offset: number): string =>
  `${kind === "slot" ? "s" : "r"}${index}${offset > 0 ? `+${offset}` : ""}`;

/** "f32" of float32, "bf16" of bfloat16, "f8e4m3fn" of float8e4m3fn. */
const shortName = (dtype: DType): string =>
  dtype.replace("float", "f").replace("uint", "u").replace("int", "i");

function storage(
  { dtype, rounding }: { readonly dtype: DType; readonly rounding?: DType },
  access: string,
): string {
  const stored = shortName(dtype);
  if (!rounding) return stored;
  const rounded = shortName(rounding);
  return access === "read" ? `${stored}→${rounded}` : `${rounded}→${stored}`;
}

function slotTable({ slots, values, launches }: Plan): string[] {
  return slots.map((bytes, slot) => {
    const tenants = values
      .filter((value) => value.slot === slot)
      .map(({ first, last, role }) => {
        const from = first < 0 ? "" : String(first);
        const to = last >= launches.length ? "" : String(last);
        return `${from}–${to} ${role}`;
      });
    return `slot ${String(slot).padEnd(4)} ${size(bytes).padEnd(30)} ${tenants.join(" | ")}`;
  });
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** "12.0 MiB (12,597,120 bytes)" */
function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} bytes`;
  const [unit, scale] = bytes < 2 ** 20 ? ["KiB", 2 ** 10] : ["MiB", 2 ** 20];
  return `${(bytes / Number(scale)).toFixed(1)} ${unit} (${bytes.toLocaleString("en-US")} bytes)`;
}
