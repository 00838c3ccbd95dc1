import { bfloat16, float16 } from "@halfstep/formats";
import type { AuditedNode, HalfAudit, HalfAuditOptions } from "./half-audit.js";

const formats = { float16, bfloat16 } as const;

/** Operators that do no harm and are listed. */
const mostHarmless = 8;

/**
 * An audit in lines for people: what half precision does to the results, which operators have to stay float32 and why, and which lose
 * numbers without harm.
 * @param options those of the audit
 *
 * @example
 * for (const line of describeAudit(await auditHalf(model, inputs))) console.log(line);
 */
export function describeAudit(
  { nodes, keep, errors }: HalfAudit,
  { dtype = "float16", tolerance = 0.01 }: HalfAuditOptions = {},
): readonly string[] {
  const kept = new Set(keep);
  const row = (node: AuditedNode): string =>
    `  ${node.operator.padEnd(width)}  ${node.name}: ${reasonOf(node, dtype)}`;
  const suspects = nodes.filter(({ lost, error }) => lost > 0 || !(error <= tolerance));
  const width = Math.max(0, ...suspects.map(({ operator }) => operator.length));
  const results = Object.entries(errors).map(([name, { all, kept: after }]) =>
    kept.size === 0
      ? `${name} ${described(all)} in ${dtype}`
      : `${name} ${described(all)} in ${dtype}, and ${described(after)} with ${kept.size} of ${nodes.length} operators in float32`,
  );
  if (kept.size > 0) {
    const isEnough = Object.values(errors).every(({ kept: after }) => after <= tolerance);
    return [
      ...results,
      "these have to stay float32:",
      ...nodes.filter(({ name }) => kept.has(name)).map(row),
      ...(isEnough
        ? []
        : [
            `that is not enough for an error of ${percent(tolerance)}: many small errors add up; ${dtype === "float16" ? "try bfloat16, or stay with float32" : "stay with float32"}`,
          ]),
    ];
  }
  return [
    ...results,
    "nothing has to stay float32",
    ...(suspects.length === 0
      ? []
      : [`${suspects.length} of ${nodes.length} operators lose numbers, without harm:`]),
    ...suspects.slice(0, mostHarmless).map(row),
    ...(suspects.length > mostHarmless ? [`  and ${suspects.length - mostHarmless} more`] : []),
  ];
}

const described = (error: number): string =>
  Number.isNaN(error) ? "loses finite numbers" : `errs by ${percent(error)} of its largest number`;

/** What half precision does to an operator. */
function reasonOf({ largest, lost, error }: AuditedNode, dtype: "float16" | "bfloat16"): string {
  const { max, smallestSubnormal } = formats[dtype].finfo;
  if (lost > 0)
    return largest > max
      ? `overflow: ${lost} ${lost === 1 ? "result is" : "results are"} lost, up to ${digits(largest)}; ${dtype} ends at ${max}`
      : `overflow: operands or sums beyond ${max} lose ${lost} ${lost === 1 ? "result" : "results"}, though the largest is ${digits(largest)}`;
  if (largest > 0 && largest < smallestSubnormal)
    return `underflow: all results vanish, the largest is ${digits(largest)}; ${dtype} begins at ${digits(smallestSubnormal)}`;
  return `rounding: errs by ${percent(error)} of its largest result, ${digits(largest)}`;
}

const percent = (share: number): string => `${digits(100 * share, 2)} %`;

const digits = (value: number, count = 4): string => String(Number(value.toPrecision(count)));
