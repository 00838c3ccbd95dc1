import type { HeadOperand } from "./heads.js";
import {
  type AttentionBlock,
  type BlockNeeds,
  paddedQuads,
  padding,
  subgroupsOf,
} from "./matrix-block.js";
import { scoreStride, weightStride } from "./matrix-scores.js";
import { type PassCode, sidesOf } from "./pass-code.js";
import type { AttentionParts } from "./shape.js";
import { tokenOf } from "./tile.js";

/** An operand in workgroup memory. */
export interface Staged {
  readonly name: string;
  /** The variable: operands that are never needed at the same time share one. */
  readonly memory: string;
  readonly along: "rows" | "columns";
  readonly size: "s.size" | "s.width";
  readonly quads: number;
}

/** The operands of a pass in workgroup memory. */
export function stagedBy(
  { sizeQuads, widthQuads }: AttentionParts,
  pass: PassCode,
): readonly Staged[] {
  const { score, change } = sidesOf[pass.rows];
  const staged = (
    name: string,
    along: Staged["along"],
    isSize: boolean,
    memory = `block_${name}`,
  ): Staged => ({
    ...{ name, memory, along },
    ...(isSize ? { size: "s.size", quads: sizeQuads } : { size: "s.width", quads: widthQuads }),
  });
  const ofScores = [staged(score[0], "rows", true), staged(score[1], "columns", true)];
  return pass.isBackward
    ? [...ofScores, staged(change[0], "rows", false), staged(change[1], "columns", false)]
    : [...ofScores, staged("value", "columns", false, `block_${score[1]}`)];
}

/** What the blocks of a pass hold. */
export function blockNeeds(
  parts: AttentionParts,
  pass: PassCode,
  operands: readonly HeadOperand[],
): BlockNeeds {
  const staged = stagedBy(parts, pass);
  const quads = (along: Staged["along"]): number[] =>
    staged.filter((each) => each.along === along).map((each) => each.quads);
  return {
    factors: operands.filter(({ isResult }) => !isResult).map(({ binding }) => binding),
    rows: quads("rows"),
    columns: quads("columns"),
    sharesColumns: !pass.isBackward,
    results: pass.results.map((result) => result.quads),
    scores: pass.isBackward ? 2 : 1,
  };
}

/** Quads of a row of a head, with what separates rows. */
export const headStride = (block: AttentionBlock, quads: number): number =>
  paddedQuads(block, quads) + padding.halves / 4;

export function memoryOf(block: AttentionBlock, staged: readonly Staged[], pass: PassCode): string {
  const { rows } = block;
  const quads = new Map<string, number>();
  for (const { memory, along, quads: own } of staged) {
    const needed = block[along] * headStride(block, own);
    quads.set(memory, Math.max(needed, quads.get(memory) ?? 0));
  }
  const scored = pass.isBackward ? ["score", "change"] : ["score"];
  return [
    ...[...quads].map(([name, count]) => `${name}: array<vec2u, ${count}>`),
    ...scored.map((name) => `${name}_block: array<vec4f, ${rows * scoreStride(block)}>`),
    ...pass.results.map(
      ({ weights }) => `${weights}_weights: array<vec2u, ${rows * weightStride(block)}>`,
    ),
  ]
    .map((declared) => `var<workgroup> ${declared};\n`)
    .join("");
}

/** Loads an operand's rows of the block, or its columns of a step, with zeros behind the elements of a head. */
export function stageOperand(
  block: AttentionBlock,
  { name, memory, along, size, quads }: Staged,
  isCopied: boolean,
  lastColumn: string,
  length: string,
): string {
  const perLine = paddedQuads(block, quads);
  const [origin, last] =
    along === "rows" ? ["first_row", `${length} - 1u`] : ["first_column", lastColumn];
  return `    for (var q = local; q < ${block[along] * perLine}u; q += ${subgroupsOf(block) * block.lanes}u) {
      let c = q % ${perLine}u;
      let token = min(${origin} + q / ${perLine}u, ${last});
      ${memory}[q / ${perLine}u * ${headStride(block, quads)}u + c] = ${
        isCopied
          ? `select(vec2u(), ${name}_data[${tokenOf(name, "token")} + c], c < (${size} >> 2u))`
          : `as_halves(select(vec4f(), quad_${name}(${tokenOf(name, "token")}, c), c < ((${size} + 3u) >> 2u)))`
      };
    }
`;
}
