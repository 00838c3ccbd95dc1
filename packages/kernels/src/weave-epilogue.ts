import type { KernelView, ProgramContext } from "@halfstep/device";
import { factorsOf } from "./definition.js";
import { dtypesOf } from "./domain.js";
import type { Epilogue, WovenDefinition } from "./woven-definition.js";
import { wovenName } from "./woven-names.js";

/**
 * The definition of a kernel whose result passes through an epilogue. The epilogue's operands are bound before the result. Where
 * the store applies the epilogue, a scalar `elements` has the number of elements of the result, behind which it stores zeros.
 */
export function weaveEpilogue(definition: WovenDefinition, epilogue: Epilogue): WovenDefinition {
  const { name, variant = "", bindings, scalars = [], conversions = [] } = definition;
  const { body, streams, movesQuads, copied, directives, subgroups, workgroups, reference } =
    definition;
  const { operands } = epilogue;
  const own = bindings.length - 1;
  const end = own + operands.length;
  const unit = bindings[own]?.unit ?? 4;
  const factors = factorsOf(definition);
  const result = bindings[own]?.name ?? "";
  /** Operands of the result's shape are moved as the result is. */
  const movedAs = (x: string): string =>
    operands.some(({ name: operand, kind }) => operand === x && kind === "same") ? result : x;
  /** The bindings of the kernel's own functions: all but the epilogue's operands. */
  const ownOf = <T>(all: readonly T[]): readonly T[] => all.filter((_, i) => i < own || i >= end);
  const ownContext = (context: ProgramContext): ProgramContext => ({
    ...context,
    bindings: ownOf(context.bindings),
  });
  return {
    ...definition,
    name: `${name}+${epilogue.name}`,
    variant: `${variant} ${epilogue.variant}`,
    bindings: [
      ...bindings.slice(0, own),
      ...operands.map(({ name: x, domain }) => ({
        name: x,
        access: "read" as const,
        unit,
        dtypes: dtypesOf(domain),
      })),
      ...bindings.slice(own),
    ],
    factors: factors < own ? factors : own + (epilogue.isArithmetic ? operands.length : 0),
    scalars: [
      ...scalars,
      ...epilogue.scalars,
      ...(definition.epilogue === "store"
        ? [{ name: wovenName("elements"), type: "u32" } as const]
        : []),
    ],
    conversions: [...conversions, ...epilogue.conversions],
    woven: { ...definition.woven, epilogue },
    one: wovenName("one"),
    body: (context, woven, quads) => body(ownContext(context), woven, quads),
    ...(streams && { streams: (i, x) => streams(i, movedAs(x)) }),
    ...(movesQuads && { movesQuads: (context) => movesQuads(ownContext(context)) }),
    ...(copied && { copied: (context) => copied(ownContext(context)) }),
    ...(directives && { directives: (context) => directives(ownContext(context)) }),
    ...(subgroups && { subgroups: (context) => subgroups(ownContext(context)) }),
    workgroups: (values, lengths, context, quads) =>
      workgroups(values, ownOf(lengths), ownContext(context), quads),
    reference(views, values) {
      reference(ownOf(views), values);
      epilogue.reference(views[end] as KernelView, views.slice(own, end), values);
    },
  };
}
