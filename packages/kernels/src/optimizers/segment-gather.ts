import type { Kernel, KernelBinding, KernelView } from "@halfstep/device";
import { ByObjects } from "../by-objects.js";
import { StripEvaluator } from "../formula/strips.js";
import { variablesOf } from "../formula/walk.js";
import { writeWgsl } from "../formula/write-wgsl.js";
import { defineKernel, linearWorkgroups } from "../kernel.js";
import type { SegmentTotals, UpdatePass, UpdateRule } from "./rule.js";
import { segmentWords } from "./segment-table.js";
import { tracePass, traceTotals } from "./trace-rule.js";
import { controlLets, scalarLets } from "./weave.js";
import { controlNumbers } from "./weave-reference.js";

const groupSize = 64;
const kernels = new ByObjects<Kernel>();

/**
 * The kernel that adds up the chunks of each segment after pass `index`, in a fixed order, and computes factors from the totals: one
 * workgroup for each segment.
 */
export function gatherTotals(rule: UpdateRule, index: number): Kernel {
  return kernels.get([rule], `${index}`, () => {
    const { totals } = rule.passes[index] as UpdatePass;
    return makeKernel(rule, index, totals as SegmentTotals<string, string>);
  });
}

function makeKernel(
  rule: UpdateRule,
  index: number,
  totals: SegmentTotals<string, string>,
): Kernel {
  const { state, factors } = totals;
  const { terms } = tracePass(rule, index);
  const made = traceTotals(rule, index);
  const names = Object.keys(made);
  const formulas = Object.values(made);
  const used = variablesOf(formulas);
  const written = writeWgsl(formulas, { prefix: "rule", nameOf: (variable) => variable });
  const writtenOf = (name: string): string | undefined => written.values[names.indexOf(name)];
  const isMax = totals.fold === "max";
  const fold = (value: string): string => (isMax ? `max(all, ${value})` : `all + ${value}`);
  const bindings: KernelBinding[] = [
    { name: "control", access: "read", dtypes: ["float32"] },
    { name: "segments", access: "read", dtypes: ["uint32"] },
    { name: "partials", access: "read", dtypes: ["float32"] },
    { name: "factors", access: "readwrite", dtypes: ["float32"] },
  ];
  if (state) bindings.push({ name: state, access: "readwrite", unit: 1, dtypes: ["float32"] });
  const uses = (name: string): boolean => used.has(name);
  let evaluator: StripEvaluator | undefined;
  return defineKernel({
    name: `update ${rule.name}`,
    variant: `gather ${index}`,
    bindings,
    scalars: [
      { name: "first", type: "u32" },
      { name: "end", type: "u32" },
      ...rule.scalars.map((name) => ({ name, type: "f32", runtime: true }) as const),
    ],
    body: () => `${written.functions}var<workgroup> gathered: array<vec4f, ${groupSize}>;
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let segment = s.first + group.x + group.y * groups.x;
  if (segment >= s.end) { return; }
  let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let record = load_segments(segment);
  var all = vec4f();
  for (var i = record.x + local; i < record.y; i += ${groupSize}u) { all = ${fold("load_partials(i)")}; }
  gathered[local] = all;
  workgroupBarrier();
  if (local > 0u) { return; }
  for (var i = 1u; i < ${groupSize}u; i++) { all = ${fold("gathered[i]")}; }
${controlLets(rule, used)}${scalarLets(rule, used)}${terms
  .map((_, i) => `  let total${i} = all.${"xyzw"[i]};\n`)
  .join("")}${uses("rows") || uses("size") ? "  let rows = f32(record.z);\n" : ""}${
  uses("columns") || uses("size") ? "  let columns = f32(record.w);\n" : ""
}${uses("size") ? "  let size = rows * columns;\n" : ""}${
  state ? `  let ${state} = load_${state}(segment);\n` : ""
}${written.statements.map((statement) => `  ${statement}\n`).join("")}  store_factors(segment, vec4f(${[
      0, 1, 2, 3,
    ]
      .map((i) => writtenOf(factors[i] ?? "") ?? "0.0")
      .join(", ")}));
${state ? `  store_${state}(segment, ${writtenOf(state) ?? state});\n` : ""}}
`,
    workgroups: ({ first, end }) => linearWorkgroups((end as number) - (first as number), 1),
    reference(views, scalars) {
      const [control, segments, partials, stored, kept] = views as readonly KernelView[];
      if (!control || !segments || !partials || !stored || control[0] === 0) return;
      evaluator ??= new StripEvaluator(formulas);
      const numbers = controlNumbers(rule, control, scalars);
      for (let i = scalars.first as number; i < (scalars.end as number); i++) {
        const [from, to, rows, columns] = segments.subarray(
          i * segmentWords,
          (i + 1) * segmentWords,
        ) as unknown as [number, number, number, number];
        const segment: Record<string, number> = { rows, columns, size: rows * columns };
        for (const t of terms.keys()) {
          let total = 0;
          for (let chunk = from; chunk < to; chunk++) {
            const value = partials[chunk * 4 + t] as number;
            total = isMax ? Math.max(total, value) : total + value;
          }
          segment[`total${t}`] = total;
        }
        if (state) segment[state] = kept?.[i] as number;
        evaluator.begin({ ...numbers, ...segment }, 1);
        for (const place of factors.keys()) stored[i * 4 + place] = 0;
        for (const [root, name] of names.entries()) {
          const value = evaluator.result(root)[0] as number;
          if (name !== state) stored[i * 4 + factors.indexOf(name)] = value;
          else if (kept) kept[i] = value;
        }
      }
    },
  });
}
