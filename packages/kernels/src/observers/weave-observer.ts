import type { KernelBinding, ProgramContext } from "@halfstep/device";
import { factorsOf } from "../definition.js";
import type { WovenDefinition } from "../woven-definition.js";
import { wovenName } from "../woven-names.js";
import type { Observation, ObservedStore, StoreObserver } from "./store-observer.js";

/**
 * The definition of a kernel whose stores to these bindings of access "write" call an observer, with the observer's words as the
 * last binding. On the CPU the target calls the observer after storage has rounded.
 */
export type WeaveObserver = (
  definition: WovenDefinition,
  observer: StoreObserver,
  results: readonly string[],
) => WovenDefinition;

export const weaveObserver: WeaveObserver = (definition, observer, results) => {
  const { name, variant = "", bindings, scalars = [] } = definition;
  const { body, streams, movesQuads, subgroups, directives, workgroups, reference } = definition;
  const observed: Observation = {
    observer,
    results,
    declarations: (...ofKernel) => observerDeclarations(observer, results, ...ofKernel),
  };
  const ownContext = (context: ProgramContext): ProgramContext => ({
    ...context,
    bindings: context.bindings.slice(0, -1),
  });
  return {
    ...definition,
    name: `${name}+${observer.name}`,
    variant: `${variant} ${results.join(" ")}`.trim(),
    bindings: [...bindings, observer.binding],
    scalars: [...scalars, ...results.flatMap((result) => observer.scalars(result))],
    factors: factorsOf(definition),
    woven: { ...definition.woven, observed },
    body: (context, woven, quads) =>
      withObservedEntry(body(ownContext(context), woven, quads), observed),
    ...(streams && { streams: (i, x) => i < bindings.length && streams(i, x) }),
    ...(movesQuads && { movesQuads: (context) => movesQuads(ownContext(context)) }),
    ...(subgroups && { subgroups: (context) => subgroups(ownContext(context)) }),
    ...(directives && { directives: (context) => directives(ownContext(context)) }),
    workgroups: (values, lengths, context, quads) =>
      workgroups(values, lengths.slice(0, -1), ownContext(context), quads),
    reference: (views, values) => reference(views.slice(0, -1), values),
  };
};

function observerDeclarations(
  observer: StoreObserver,
  results: readonly string[],
  bindings: readonly KernelBinding[],
  context: ProgramContext,
): string {
  const stores = results.map((result): ObservedStore => {
    const index = bindings.findIndex(({ name }) => name === result);
    const { unit = 4 } = bindings[index] as KernelBinding;
    const storage = context.bindings[index] as ProgramContext["bindings"][number];
    return { name: result, unit, ...storage };
  });
  return observer.declarations(stores);
}

const entryPoint = /@compute ((?:@\w+\([^)]*\)\s*)+)fn main\(((?:[^()]|\([^()]*\))*)\)/;

/** The program with a new entry point, which calls the original one and then merges the observations. */
function withObservedEntry(code: string, { observer, results }: Observation): string {
  const direct = results.find((name) => code.includes(`${name}_data[`));
  if (direct !== undefined) throw new Error(`the program stores ${direct} without store_${direct}`);
  const [head, attributes, parameters] = entryPoint.exec(code) ?? [];
  if (head === undefined || parameters === undefined) throw new Error("the program has no main");
  const plain = parameters.replace(/@\w+\([^)]*\)\s*/g, "");
  const names = [...plain.matchAll(/(\w+)\s*:/g)].map(([, name]) => name);
  return `${code.replace(head, `fn ${wovenName("main")}(${plain})`)}
@compute ${attributes}fn main(${parameters}) {
  ${wovenName("main")}(${names.join(", ")});
  ${observer.tell(results)}}
`;
}
