import type { KernelDefinition } from "./definition.js";

const prefix = "woven_";

/** The name of a woven binding, scalar or function (of an epilogue, a twin or an observer). Kernels cannot have names with its prefix. */
export const wovenName = (name: string): string => prefix + name;

/** The name of the twin of a result. */
export const twinOf = (result: string): string => wovenName(`${result}_twin`);

/** @throws TypeError for a binding or a scalar whose name has the prefix of woven names. */
export function refuseWovenNames({ name, bindings, scalars = [] }: KernelDefinition): void {
  const all = { binding: bindings, scalar: scalars };
  for (const [kind, parameters] of Object.entries(all))
    for (const parameter of parameters)
      if (parameter.name.startsWith(prefix))
        throw new TypeError(
          `${kind} "${parameter.name}" of kernel "${name}": names that begin with "${prefix}" are for what is woven into kernels: choose another`,
        );
}
