import { holding, type Quad, type UnitQuads } from "./quad-units.js";

/** Quads of each operand that an invocation of a team keeps in registers. */
const keptQuads = 8;

/** A unit of a row that an invocation keeps, in WGSL. */
export interface KeptUnit {
  /** Whether the row has it. If not, its quads are those of the row's last unit. */
  readonly inside: string;
  /** Its place in operands. */
  readonly place: string;
  readonly quads: readonly Quad[];
}

/**
 * `kept` on a row of `count` units from unit `base` on, where the registers of so many lanes, which `lane` numbers, hold it: each operand
 * is loaded once. Else `again`. All invocations take the same branch.
 */
export function keptRow(
  lanes: number,
  quads: UnitQuads,
  count: string,
  kept: (units: readonly KeptUnit[]) => string,
  again: string,
): string {
  const units = Array.from({ length: keptQuads / quads }, (_, k) => k);
  return `  if (${count} <= ${lanes * units.length}u) {
${units
  .map(
    (k) => `    let inside${k} = lane + ${k * lanes}u < ${count};
    let j${k} = min(lane + ${k * lanes}u, ${count} - 1u);
`,
  )
  .join("")}${holding(
  quads,
  units.map((k) => `j${k}`),
  (held) =>
    kept(held.map((unit, k) => ({ inside: `inside${k}`, place: `base + j${k}`, quads: unit }))),
)}  } else {
${again}  }
`;
}
