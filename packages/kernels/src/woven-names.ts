import type { KernelDefinition } from "./definition.js";

const prefix = "woven_";

/**
 * The name of something that is woven into a kernel of somebody else: an epilogue's operands and scalars, a twin, an observer's words, and
 * the functions of them all. No kernel's author can have chosen it.
 */
export const wovenName = (name: string): string => prefix + name;

/** The name of the twin of a result. */
export const twinOf = (result: string): string => wovenName(`${result}_twin`);

/** @throws TypeError for a binding or a scalar that has a name such as weaving gives. */
export function refuseWovenNames({ name, bindings, scalars = [] }: KernelDefinition): void {
  const all = { binding: bindings, scalar: scalars };
  for (const [kind, parameters] of Object.entries(all))
    for (const parameter of parameters)
      if (parameter.name.startsWith(prefix))
        throw new TypeError(
          `${kind} "${parameter.name}" of kernel "${name}": names that begin with "${prefix}" are for what is woven into kernels: choose another`,
        );
}
