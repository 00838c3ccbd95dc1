import { type Entry, entryOf } from "./entry.js";
import { type Findings, Generation, type GenerationOptions } from "./generation.js";
import { limitsName } from "./lane-process.js";
import { type LaneName, limitsLane } from "./lanes/names.js";
import type { Precision } from "./lanes/prepared.js";
import { limitsOf, rowsOf } from "./outcomes.js";
import type { Limits, Row } from "./results.js";
import type { Case, Workload } from "./workload.js";
import { limitCases } from "./workloads/limits.js";

export interface MeasureOptions extends GenerationOptions {
  readonly lanes: readonly LaneName[];
  /** Fractions of the limits are of CPU time then, which other work on the machine does not change. */
  readonly isSoftware: boolean;
  readonly isChosen: (chosen: Case) => boolean;
}

export interface MeasuredWorkload {
  readonly rows: readonly Row[];
  readonly limits: Limits;
  /** Of the lanes that opened, and why others did not. */
  readonly versions: ReadonlyMap<string, string>;
  readonly missing: ReadonlyMap<string, string>;
}

/**
 * Measures a workload in fresh processes, one a library at a time: results are compared first; then each round runs every case of
 * every library once, so that what else the machine does meets all of them. The rounds are divided among several generations of
 * such processes, since some are slower than others for as long as they live.
 */
export async function measureWorkload(
  workload: Workload,
  options: MeasureOptions,
): Promise<MeasuredWorkload> {
  const cases = workload.cases.filter(options.isChosen);
  const limits = limitCases(options.isSoftware).map((chosen) =>
    entryOf(limitsLane, chosen, { workload: limitsName, name: chosen.name, precision: "float32" }),
  );
  const entries = entriesOf(workload, cases, options.lanes);
  const findings: Findings = { versions: new Map(), missing: new Map(), references: new Map() };
  for (let process = 0; process < options.processes; process++)
    await new Generation(process, findings, options).run([...limits, ...entries]);
  const { versions, missing } = findings;
  const rates = limitsOf(limits, options.isSoftware);
  const opened = entries.filter(({ lane }) => versions.has(lane.name));
  return { rows: rowsOf(workload, cases, opened, rates), limits: rates, versions, missing };
}

/** Of the lanes that have any of the cases; those that lack one are absent there. */
function entriesOf(
  workload: Workload,
  cases: readonly Case[],
  lanes: readonly LaneName[],
): readonly Entry[] {
  const all = cases.flatMap((chosen) =>
    chosen.precisions.flatMap((precision) =>
      lanes.map((lane) => {
        const subject = { workload: workload.name, name: chosen.name, precision };
        const entry = entryOf(lane, chosen, subject);
        if (!takesOn(lane, workload, chosen, precision)) entry.refusal = { status: "absent" };
        return entry;
      }),
    ),
  );
  const needed = new Set(all.flatMap(({ refusal, lane }) => (refusal ? [] : [lane])));
  return all.filter(({ lane }) => needed.has(lane));
}

/** The most work for plain JavaScript: it would need seconds for more, without informative figures. */
const mostOfJavaScript = 1e9;

/**
 * Peers have no bfloat16. In float16 none trains (jax-js has no gradient of a cast), tfjs does nothing, and jax-js nothing in
 * WebAssembly.
 */
function takesOn(
  { name, library, backend }: LaneName,
  { level }: Workload,
  chosen: Case,
  precision: Precision,
): boolean {
  if (!chosen.on[library] || chosen.tooSlow?.includes(name)) return false;
  if (library === "halfstep" || library === "torch") return true;
  if (backend === "cpu" && chosen.cost(precision).operations > mostOfJavaScript) return false;
  if (precision === "float32") return true;
  if (precision === "bfloat16" || level !== "operation" || library === "tfjs") return false;
  return library !== "jax" || backend === "webgpu";
}
