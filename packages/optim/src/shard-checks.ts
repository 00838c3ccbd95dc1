import type { UpdateRule } from "@halfstep/kernels/optimizers";
import { ShardError } from "./errors.js";
import type { MomentFormat } from "./group-state.js";

/** What a group of parameters is made with. */
interface GroupOptions {
  readonly algorithm: { readonly name: string; readonly extension?: unknown };
  readonly rule: UpdateRule;
  readonly moments: MomentFormat;
}

/** Throws a ShardError for optimizers and formats that cannot step a part of a parameter. */
export function requireElementwise({ algorithm, rule, moments }: GroupOptions): void {
  if (algorithm.extension || rule.passes.some(({ totals }) => totals))
    throw new ShardError(
      `${algorithm.name} needs whole parameters, such as their norms or matrices, and a shard has parts of them: average gradients by mode "allReduce", or take an optimizer of elements such as AdamW`,
    );
  if (moments === "int8")
    throw new ShardError(
      'moments are "int8", whose blocks belong to whole parameters, and a shard has parts of them: take "bfloat16" or "float32"',
    );
}

/** Throws a ShardError where parameters are a shard. */
export function refuseShard({ shard }: { readonly shard?: object }, what: string): void {
  if (shard)
    throw new ShardError(
      `${what} need whole parameters, and this rank has a shard of them: average gradients by mode "allReduce"`,
    );
}
