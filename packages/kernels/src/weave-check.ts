import type { ProgramContext } from "@halfstep/device";
import { factorsOf, type KernelDefinition } from "./definition.js";
import { flagBinding, tellGradients } from "./found-flag.js";
import { largestOf } from "./wgsl/magnitudes.js";

/**
 * The definition of a kernel that looks at what it stores in these float32 bindings of access "write", and sets the flag that is its
 * last binding where it stores ±infinity or NaN: what `checkFinite` finds in memory, without loading it again. The CPU looks once
 * storage has rounded, in `runOnCpu`.
 */
export function weaveCheck(
  definition: KernelDefinition,
  results: readonly string[],
): KernelDefinition {
  const { name, variant = "", bindings } = definition;
  const { body, movesQuads, subgroups, directives, workgroups, reference } = definition;
  const ownContext = (context: ProgramContext): ProgramContext => ({
    ...context,
    bindings: context.bindings.slice(0, -1),
  });
  return {
    ...definition,
    name: `${name}+check-finite`,
    variant: `${variant} ${results.join(" ")}`.trim(),
    bindings: [...bindings, flagBinding],
    factors: factorsOf(definition),
    checked: results,
    body: (context, epilogue) => withCheckedEntry(body(ownContext(context), epilogue), results),
    ...(movesQuads && { movesQuads: (context) => movesQuads(ownContext(context)) }),
    ...(subgroups && { subgroups: (context) => subgroups(ownContext(context)) }),
    ...(directives && { directives: (context) => directives(ownContext(context)) }),
    workgroups: (scalars, lengths, context) =>
      workgroups(scalars, lengths.slice(0, -1), ownContext(context)),
    reference: (views, scalars) => reference(views.slice(0, -1), scalars),
  };
}

/** Where an invocation keeps the bits that are furthest from zero of all that it stored; `remember_stored` is for `store_…`. */
export const rememberStoredWgsl = `var<private> stored_bits: vec4u;
fn remember_stored(v: vec4f) { stored_bits = max(stored_bits, bitcast<vec4u>(v) & vec4u(0x7fffffffu)); }
`;

const entryPoint = /@compute ((?:@\w+\([^)]*\)\s*)+)fn main\(((?:[^()]|\([^()]*\))*)\)/;

/** The program, with an entry point that calls what was the entry point and then looks at what is remembered. */
function withCheckedEntry(code: string, results: readonly string[]): string {
  const direct = results.find((name) => code.includes(`${name}_data[`));
  if (direct !== undefined) throw new Error(`the program stores ${direct} without store_${direct}`);
  const [head, attributes, parameters] = entryPoint.exec(code) ?? [];
  if (head === undefined || parameters === undefined) throw new Error("the program has no main");
  const plain = parameters.replace(/@\w+\([^)]*\)\s*/g, "");
  const names = [...plain.matchAll(/(\w+)\s*:/g)].map(([, name]) => name);
  return `${code.replace(head, `fn compute_results(${plain})`)}
@compute ${attributes}fn main(${parameters}) {
  compute_results(${names.join(", ")});
  let most = ${largestOf("stored_bits")};${tellGradients("foundInf", "most", "0x7f800000u")}}
`;
}
