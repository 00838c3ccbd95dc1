import type { WovenDefinition } from "../woven-definition.js";
import { type BlockFactors, blockWorkgroups } from "./block.js";
import type { BlockSize } from "./block-size.js";
import { copiesOf } from "./copies.js";
import { chooseEngine } from "./engine.js";
import { matrixBlockProgram, matrixDirectives } from "./matrix-block.js";
import { sharedBlockProgram } from "./shared-block.js";
import { storeQuad } from "./store.js";
import { type Contraction, type TileShape, tileProgram, tileWorkgroups } from "./tile.js";

/** A product in the form of each engine. Its factors are the first two bindings of its kernel, its result is `out`. */
export interface ProductForms {
  readonly shape: TileShape;
  /** By rows. */
  readonly contraction: Contraction;
  /** By blocks of a size; undefined where blocks would be mostly empty. */
  readonly blocks?: { readonly size: BlockSize; readonly factors: BlockFactors } | undefined;
}

/** The parts of a product's definition that depend on the engine, which is chosen when the kernel is compiled. */
export function byEngine({
  shape,
  contraction,
  blocks,
}: ProductForms): Required<
  Pick<WovenDefinition, "subgroups" | "directives" | "copied" | "body" | "workgroups">
> {
  const { width } = shape;
  return {
    subgroups(context) {
      const { kind } = chooseEngine(blocks?.size, context);
      return kind === "matrix" || (kind === "rows" && context.subgroupSize > 0);
    },
    directives: (context) =>
      chooseEngine(blocks?.size, context).kind === "matrix" ? matrixDirectives : "",
    copied(context) {
      const engine = chooseEngine(blocks?.size, context);
      if (engine.kind === "rows" || !blocks) return [];
      const { a, b } = copiesOf(engine, blocks.factors, context.bindings);
      return [a, b];
    },
    body(context, woven) {
      const engine = chooseEngine(blocks?.size, context);
      if (engine.kind === "rows" || !blocks)
        return tileProgram(shape, contraction, context, woven?.epilogue);
      const { factors } = blocks;
      const store = storeQuad(width, woven?.epilogue);
      const copies = copiesOf(engine, factors, context.bindings);
      return engine.kind === "matrix"
        ? matrixBlockProgram(engine, width, factors, store, copies)
        : sharedBlockProgram(engine.block, width, factors, store, copies);
    },
    workgroups(scalars, _, context) {
      const engine = chooseEngine(blocks?.size, context);
      return engine.kind === "rows"
        ? tileWorkgroups(shape, scalars, context)
        : blockWorkgroups(engine.block, width, scalars);
    },
  };
}
